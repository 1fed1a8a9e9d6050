"""Vertex AI through Google's own client, for the steps and commands that need it.

The client speaks REST, so that one and the same request can be shown, recorded and sent.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import os
import socket
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from components.reach import (
    ANSWER_SECONDS,
    CONNECT_SECONDS,
    Unreachable,
    is_passing,
    told_if_slow,
    without_password,
)
from trainer.errors import UsageError, suggestion

_CREDENTIALS = "GOOGLE_APPLICATION_CREDENTIALS"
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

    check_region(location)
    _knock(api_endpoint or f"https://{location}-aiplatform.googleapis.com")
    plain = api_endpoint.startswith("http://")
    if not plain:
        _check_credentials(os.environ.get(_CREDENTIALS, ""))
    _end_every_request()
    with asking():
        aiplatform.init(
            project=project,
            location=location,
            api_endpoint=api_endpoint or None,
            api_transport="rest",
            credentials=credentials.AnonymousCredentials() if plain else None,  # type: ignore[no-untyped-call]
        )
    return aiplatform


def check_region(location: str) -> None:
    """Raises UsageError if the client knows no such region."""
    from google.cloud.aiplatform import constants

    if location not in constants.base.SUPPORTED_REGIONS:
        near = suggestion(location, list(constants.base.SUPPORTED_REGIONS))
        raise UsageError(f"location ({location}): no region of Vertex AI{near}")


def _knock(address: str) -> None:
    """Says at once that nobody is there; the client would try again for two minutes."""
    if urllib.request.getproxies():
        return
    try:
        place = urlsplit(address if "//" in address else f"https://{address}")
        port = place.port or (80 if place.scheme == "http" else 443)
        socket.create_connection((place.hostname or "", port), CONNECT_SECONDS).close()
    except ValueError as error:
        raise UsageError(f"api_endpoint ({without_password(address)}): {error}") from None
    except OSError as error:
        raise Unreachable(
            f"Vertex at {without_password(address)} cannot be reached: {error}"
        ) from None


def _check_credentials(path: str) -> None:
    """Refuses a file that Google's library would stumble over, rather than complain of."""
    if not path:
        return
    try:
        with open(path, encoding="utf-8") as file:
            is_key = isinstance(json.load(file), dict)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no JSON"
        raise UsageError(f"{_CREDENTIALS} ({path}): {reason}") from None
    if not is_key:
        raise UsageError(f"{_CREDENTIALS} ({path}): holds no key: download it again")


@functools.cache
def _end_every_request() -> None:
    """Bounds what Google's clients ask: they say `timeout=None`, and would wait for ever."""
    from google.auth.transport.requests import AuthorizedSession

    ask: Any = AuthorizedSession.request

    def bounded(*args: Any, timeout: Any = None, **more: Any) -> Any:
        return ask(*args, timeout=timeout or ANSWER_SECONDS, **more)

    AuthorizedSession.request = bounded  # type: ignore[method-assign]


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
        with told_if_slow("Vertex"):
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
        raise _no_answer(error) from None
    except (RuntimeError, KeyError) as error:
        if not is_nameless(error):
            raise
        raise _no_answer("an answer without a name") from None
    except GoogleAuthError as error:
        raise UsageError(f"no use of Google credentials: {flat(error)}") from None
    except OSError as error:  # all that the client's transport raises
        raise Unreachable(f"Vertex cannot be reached: {flat(error)}") from None
    except ValueError as error:  # what the client itself checks: names, labels
        raise UsageError(f"Vertex's client refused it: {flat(error)}") from None
    finally:
        logging.disable(logging.NOTSET)


def is_nameless(error: Exception) -> bool:
    """Whether it is what the client stumbles over when an answer has no name, or an odd one."""
    return isinstance(error, KeyError) or "has not been created" in str(error)


def _no_answer(said: Any) -> UsageError:
    return UsageError(
        "Vertex answers, but not as its API does: is api_endpoint, or a proxy, behind a login? "
        f"({flat(said)[:SAID]})"
    )


def flat(text: Any) -> str:
    """Returns a text in one line."""
    return " ".join(str(text).split())
