"""One element ahead, never two; what ends the source is raised where it is asked for."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from trainer.loop.ahead import Ahead

LONG_SECONDS = 20


def test_all_elements_come_in_their_order() -> None:
    assert list(Ahead(iter(range(7)))) == list(range(7))


def test_one_element_is_fetched_before_it_is_asked_for_and_no_second_one() -> None:
    fetched: list[int] = []
    first = threading.Event()

    def source() -> Iterator[int]:
        for number in range(9):
            fetched.append(number)
            first.set()
            yield number

    ahead = Ahead(source())
    assert first.wait(LONG_SECONDS)
    # Time enough for a thread that does not wait.
    assert not threading.Event().wait(0.2)
    assert fetched == [0]
    assert next(ahead) == 0


def test_an_error_is_raised_where_the_element_is_asked_for_again_and_again() -> None:
    def source() -> Iterator[int]:
        yield 1
        raise ValueError("shard 3 is damaged")

    ahead = Ahead(source())
    assert next(ahead) == 1
    for _ in range(2):
        with pytest.raises(ValueError, match="shard 3 is damaged"):
            next(ahead)
