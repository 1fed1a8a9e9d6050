"""Figures taken batch by batch are those of the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.data import tally
from trainer.data.tally import NotFinite, Tally


@given(
    batches=st.lists(st.lists(st.floats(-1e6, 1e6, width=32), max_size=9), min_size=1, max_size=6)
)
def test_moments_of_batches_are_those_of_all_values(batches: list[list[float]]) -> None:
    found = Tally("float32")
    for batch in batches:
        found.add(np.array(batch, np.float32), len(batch), missing=1)
    figures, whole = found.figures(), np.array([v for b in batches for v in b])
    assert (figures.count, figures.missing) == (len(whole), len(batches))
    if len(whole):
        assert figures.mean == pytest.approx(whole.mean(), abs=1e-6, rel=1e-9)
        assert figures.std == pytest.approx(whole.std(), abs=1e-3, rel=1e-6)
        assert (figures.min, figures.max) == (whole.min(), whole.max())
    else:
        assert figures.mean is None


def words(*values: bytes) -> Any:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def test_of_too_many_words_the_frequent_ones_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tally._MOST_DISTINCT, "string", 4)
    found = Tally("string")
    found.add(words(b"a", b"a", b"a", b"b", b"b", b"c", b"d"), 7, 0)
    assert found.figures().distinct == 4
    found.add(words(b"e", b"a"), 2, 0)
    assert found.counts is None
    assert found.figures().vocabulary == (("a", 4), ("b", 2))
    assert found.figures().distinct is None


@pytest.mark.parametrize("value", [b"x" * 5000, b"\xff\xd8"])
def test_pictures_are_no_words(value: bytes) -> None:
    found = Tally("string")
    found.add(words(value), 1, 0)
    assert found.figures().vocabulary is None


def test_whole_numbers_are_counted_while_they_are_few() -> None:
    few, many = Tally("int64"), Tally("int64")
    few.add(np.array([3, 1, 3]), 3, 0)
    many.add(np.arange(5000), 5000, 0)
    assert few.figures().vocabulary == (("3", 2), ("1", 1))
    assert (many.figures().vocabulary, many.figures().distinct) == (None, 5000)


def test_infinity_is_refused() -> None:
    with pytest.raises(NotFinite):
        Tally("float32").add(np.array([np.inf], np.float32), 1, 0)
