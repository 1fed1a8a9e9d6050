"""Vertex AI through Google's own client, for the steps and commands that need it.

The client speaks REST, so that one and the same request can be shown, recorded and sent.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from components.reach import Unreachable, is_passing
from trainer.errors import UsageError, suggestion

KNOCK_SECONDS = 10.0
# What an error shows of an answer, which may be a web page.
SAID = 200


def connect(project: str, location: str, api_endpoint: str = "") -> Any:
    """Returns the client's package, set to one project and location.

    `api_endpoint` is Google's if empty; one that begins with http:// gets no credentials.

    Raises:
      UsageError: there is no such region, nobody answers, or there are no Google credentials.
    """
    from google.auth import credentials
    from google.cloud import aiplatform
    from google.cloud.aiplatform import constants

    if location not in constants.base.SUPPORTED_REGIONS:
        near = suggestion(location, list(constants.base.SUPPORTED_REGIONS))
        raise UsageError(f"location ({location}): no region of Vertex AI{near}")
    _knock(api_endpoint or f"https://{location}-aiplatform.googleapis.com")
    plain = api_endpoint.startswith("http://")
    with asking():
        aiplatform.init(
            project=project,
            location=location,
            api_endpoint=api_endpoint or None,
            api_transport="rest",
            credentials=credentials.AnonymousCredentials() if plain else None,  # type: ignore[no-untyped-call]
        )
    return aiplatform


def _knock(address: str) -> None:
    """Says at once that nobody is there; the client would try again for two minutes."""
    if urllib.request.getproxies():
        return
    place = urlsplit(address if "//" in address else f"https://{address}")
    try:
        port = place.port or (80 if place.scheme == "http" else 443)
        socket.create_connection((place.hostname or "", port), KNOCK_SECONDS).close()
    except (OSError, ValueError) as error:
        raise Unreachable(f"Vertex at {address} cannot be reached: {error}") from None


@contextlib.contextmanager
def asking(name: str = "") -> Iterator[None]:
    """Turns what Google's clients raise into one line, and keeps what they log to themselves.

    `name` is what is asked for, if it may not be there.
    """
    from google.api_core import exceptions
    from google.auth.exceptions import GoogleAuthError
    from google.protobuf import json_format

    logging.disable(logging.ERROR)
    try:
        yield
    except exceptions.NotFound as error:
        said = f"{name}: Vertex knows no such thing: " if name else ""
        raise UsageError(said + flat(error.message)) from None
    except exceptions.GoogleAPICallError as error:
        kind = Unreachable if is_passing(error.code) else UsageError
        raise kind(f"Vertex refused it ({error.code}): {flat(error.message)}") from None
    except exceptions.RetryError as error:
        raise Unreachable(f"Vertex cannot be reached: {flat(error.cause or error)}") from None
    except json_format.ParseError as error:
        raise UsageError(
            "Vertex answers, but not as its API does: is api_endpoint, or a proxy, behind a login? "
            f"({flat(error)[:SAID]})"
        ) from None
    except GoogleAuthError as error:
        raise UsageError(f"no use of Google credentials: {flat(error)}") from None
    except OSError as error:  # all that the client's transport raises
        raise Unreachable(f"Vertex cannot be reached: {flat(error)}") from None
    except ValueError as error:  # what the client itself checks: names, labels
        raise UsageError(f"Vertex's client refused it: {flat(error)}") from None
    finally:
        logging.disable(logging.NOTSET)


def flat(text: Any) -> str:
    """Returns a text in one line."""
    return " ".join(str(text).split())
