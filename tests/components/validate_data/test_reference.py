"""What is read out of a reference's figures is true of its values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from components.shard_data.figures import collect, merge
from components.validate_data.reference import Expected
from trainer.data.blocks import Column
from trainer.data.manifest import Feature
from trainer.data.statistics import FeatureStatistics

VALUES: dict[str, Any] = {
    "continuous": np.random.default_rng(0).normal(0, 1, 20_000),
    "rounded": np.random.default_rng(1).normal(0, 8, 20_000).round(),
    "few": np.random.default_rng(2).integers(0, 4, 5000),
    "zeros": np.where(np.random.default_rng(3).random(9000) < 0.6, 0, 7.5),
    "steps": np.repeat(np.arange(50), 100),
    "one": np.full(100, 3.0),
}


def expected(values: Any) -> Expected:
    feature = Feature(name="c", dtype="float32")
    column = {"c": Column(values.astype(np.float32))}
    limits = {"c": (float(values.min()), float(values.max()))}
    state = collect([feature], column, len(values), limits)
    return Expected(feature, merge([feature], [state]).features["c"])


@pytest.mark.parametrize("name", VALUES)
def test_at_most_so_many_values_lie_beyond_the_tails_as_their_ranks_say(name: str) -> None:
    values = VALUES[name].astype(np.float32).astype(np.float64)
    (low, low_rank), (high, high_rank) = expected(VALUES[name]).tails
    assert (values < low).sum() <= low_rank - 1 < 0.05 * len(values)
    assert (values > high).sum() == high_rank - 1 <= 0.001 * len(values)


@pytest.mark.parametrize("name", VALUES)
def test_the_bins_hold_what_they_say(name: str) -> None:
    values = VALUES[name].astype(np.float32).astype(np.float64)
    ends, counts = expected(VALUES[name]).bounds
    places = np.searchsorted(ends, values)
    assert np.bincount(places, minlength=len(counts)).tolist() == counts.tolist()
    assert len(counts) <= 24


def test_figures_of_an_earlier_version_give_range_and_bins_alone() -> None:
    figures = FeatureStatistics(
        count=10, missing=0, min=0.0, max=4.0,
        histogram_edges=(0.0, 2.0, 4.0), histogram_counts=(9, 1),
    )  # fmt: skip
    old = Expected(Feature(name="c", dtype="float32"), figures)
    assert old.tails == ((0.0, 1), (4.0, 1))
    assert [part.tolist() for part in old.bounds] == [[2.0], [9, 1]]
    assert old.total == 10
