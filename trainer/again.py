"""Requests to a store that may be away for a moment: made again, with growing pauses, and said."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from typing import TypeVar

# Half a second, doubled each time: a store that is away for some seconds is waited for.
TRIES = 5
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 15.0

_Result = TypeVar("_Result")


def again(
    request: Callable[[], _Result],
    name: str,
    passing: Callable[[Exception], bool],
    reason: Callable[[Exception], str],
    tries: int = TRIES,
) -> _Result:
    """Returns what `request` returns, called up to `tries` times.

    Args:
      request: may be called again after it has raised.
      name: of what is asked for; stands in the lines on stderr.
      passing: whether an error may be over soon.
      reason: says an error in a few words.
      tries: calls in all.

    Raises:
      Exception: what `request` raised: the last one that is `passing`, or any other one at once.
    """
    for number in range(1, tries + 1):
        try:
            return request()
        except Exception as error:
            if number == tries or not passing(error):
                raise
            pause(f"{name}: {reason(error)}", number, tries)
    raise AssertionError("unreachable")


def pause(why: str, number: int, tries: int = TRIES) -> None:
    """Says what has failed in try `number`, and waits before the next."""
    seconds = min(FIRST_PAUSE_SECONDS * 2 ** (number - 1), LONGEST_PAUSE_SECONDS)
    seconds *= random.uniform(0.5, 1.5)
    print(
        f"{why}; again in {seconds:.1f} s ({number} of {tries} tries)", file=sys.stderr, flush=True
    )
    time.sleep(seconds)
