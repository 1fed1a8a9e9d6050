"""What counts as a difference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from components.export_model.parity import compare, largest_difference

INF = float("inf")


@pytest.mark.parametrize(
    ("expected", "found", "difference"),
    [
        ([0.25, 0.5], [0.25, 0.75], 0.25),
        ([1e6], [1e6 + 1], 1e-6),
        ([np.nan, 1.0], [np.nan, 1.0], 0.0),
        ([np.nan], [1.0], INF),
        ([1.0], [np.nan], INF),
        ([np.inf], [np.inf], 0.0),
        ([1.0, 2.0], [1.0], INF),
        ([], [], 0.0),
        ([3, 4], [3, 4], 0.0),
    ],
)
def test_numbers(expected: Any, found: Any, difference: float) -> None:
    value = largest_difference(np.array(expected), np.array(found))
    assert value == pytest.approx(difference)


def test_words_are_equal_or_not() -> None:
    a, b = np.array([b"x", b"y"], object), np.array([b"x", b"z"], object)
    assert largest_difference(a, a) == 0
    assert largest_difference(a, b) == INF


def test_an_output_on_one_side_only_differs() -> None:
    one = {"p": np.zeros(2)}
    assert compare(one, {**one, "q": np.zeros(2)}) == {"p": 0.0, "q": INF}
