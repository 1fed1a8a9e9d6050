"""What is raised when a platform does not answer, or not now: worth another look a moment later.

And how long it is waited for: no request goes without an end, no wait without a word.
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
from collections.abc import Iterator

from trainer.errors import UsageError

# A server may think for a while before it answers; one that only listens never will.
CONNECT_SECONDS, ANSWER_SECONDS = 10.0, 60.0
# When a person begins to wonder, and how often they are told.
WORD_SECONDS, NEXT_WORD_SECONDS = 10.0, 60.0


class Unreachable(UsageError):
    """The platform cannot be reached, is overloaded, or has an error of its own."""


def is_passing(status: int | None) -> bool:
    """Whether an HTTP status tells of the server's state rather than of the request."""
    return status == 429 or (status or 0) >= 500


def without_password(address: str) -> str:
    """Returns an address without the name and the password in it, to be shown."""
    return re.sub(r"(^|//)[^/?#]*@", r"\1", address)


@contextlib.contextmanager
def told_if_slow(platform: str) -> Iterator[None]:
    """Says on stderr that `platform` is waited for, if that takes long."""
    ended = threading.Event()

    def tell() -> None:
        pause, waited = WORD_SECONDS, 0.0
        while not ended.wait(pause):
            waited += pause
            pause = NEXT_WORD_SECONDS
            print(f"castell: waiting for {platform} ({waited:.0f} s)", file=sys.stderr, flush=True)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
