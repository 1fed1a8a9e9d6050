"""Binding a port that a killed predecessor may still hold for a moment."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable

PORT_PATIENCE_SECONDS = 10.0
_POLL_SECONDS = 0.2


def bind(
    host: str, port: int, left: Callable[[], float] = lambda: PORT_PATIENCE_SECONDS
) -> socket.socket | None:
    """Returns a socket bound to `port` (0: any) on all interfaces, None if it stays taken.

    host: decides between IPv4 and IPv6. left: the seconds that may be spent at most.
    """
    family, every_interface = (
        (socket.AF_INET6, "::") if ":" in host else (socket.AF_INET, "0.0.0.0")
    )
    ends = time.monotonic() + min(PORT_PATIENCE_SECONDS, left())
    while True:
        bound = socket.socket(family, socket.SOCK_STREAM)
        # Connections of a killed predecessor in TIME_WAIT are no obstacle then.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((every_interface, port))
            return bound
        except OSError as error:
            bound.close()
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            if error.errno == errno.EACCES or time.monotonic() >= ends:
                return None
        time.sleep(min(_POLL_SECONDS, left()))
