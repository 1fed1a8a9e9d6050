"""KFP's own client, kept from taking any page for an answer, hiding a refusal, waiting for ever.

What is no JSON becomes an empty object there, with an id that is None; a status that refuses the
first request is asked for again until its code is lost.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from typing import Any

import kfp
import kfp_server_api
import urllib3

from components.reach import ANSWER_SECONDS, CONNECT_SECONDS, is_passing

TRIES, PAUSE_SECONDS = 3, 1.0


class NoAnswerOfKfp(Exception):
    """What answers is not the KFP API."""


class Client(kfp.Client):
    """A client all of whose answers are objects of JSON, but for logs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._read_strictly()

    def get_kfp_healthz(self, sleep_duration: float = PAUSE_SECONDS) -> Any:
        """Returns what the server says of itself; only a status that passes is asked for again."""
        # The constructor asks, before it has ended.
        self._read_strictly()
        for _ in range(TRIES - 1):
            try:
                return self._healthz_api.healthz_service_get_healthz()
            except kfp_server_api.ApiException as error:
                if not is_passing(error.status):
                    raise
                time.sleep(sleep_duration)
        return self._healthz_api.healthz_service_get_healthz()

    def _read_strictly(self) -> None:
        connection = self._healthz_api.api_client
        connection.deserialize = functools.partial(_read, type(connection).deserialize, connection)
        rest = connection.rest_client
        rest.request = functools.partial(_ask, type(rest).request, rest)
        # One that has not answered in time is not asked twice more.
        rest.pool_manager.connection_pool_kw["retries"] = urllib3.Retry(TRIES, read=0)


def _ask(ask: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Asks with an end: the client's methods have an option for it, kfp's own do not pass it on."""
    return ask(*args, **{**options, "_request_timeout": (CONNECT_SECONDS, ANSWER_SECONDS)})


def _read(read: Callable[..., Any], connection: Any, response: Any, response_type: Any) -> Any:
    """Returns what `read` makes of an answer; NoAnswerOfKfp if it is no object of JSON."""
    if response_type != "str":
        try:
            answer = json.loads(response.data)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise NoAnswerOfKfp
    return read(connection, response, response_type)
