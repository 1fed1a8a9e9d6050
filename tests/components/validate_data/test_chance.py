"""What luck may do is allowed, and little more."""

from __future__ import annotations

import numpy as np
import pytest

from components.validate_data import chance


@pytest.mark.parametrize(("rank", "reference", "values"), [(1, 1000, 1000), (5, 500, 4000)])
def test_new_values_beyond_a_rank_are_as_many_as_simulation_says(
    rank: int, reference: int, values: int
) -> None:
    rng = np.random.default_rng(0)
    # The share beyond the k-th largest of n uniform values is Beta(k, n + 1 - k).
    found = rng.binomial(values, rng.beta(rank, reference + 1 - rank, 400_000))
    allowed = chance.beyond(rank, reference, values)
    assert (found > allowed).mean() < 1e-4
    assert (found > allowed * 0.7).mean() > 1e-5


def test_no_more_values_are_allowed_than_there_are() -> None:
    assert chance.beyond(1, 1000, 1) == 1
    assert chance.beyond(1, 10**6, 1) == 0
    assert chance.beyond(1, 2, 3) == 3


def test_new_categories_are_expected_where_many_were_seen_once() -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        first, second = rng.zipf(1.4, 2000), rng.zipf(1.4, 2000)
        words, counts = np.unique(first, return_counts=True)
        share = (~np.isin(second, words)).mean()
        assert share <= chance.unseen(int((counts == 1).sum()), 2000, 2000)
    assert chance.unseen(0, 10_000, 10_000) < 0.003


@pytest.mark.parametrize("classes", [2, 30, 500])
def test_samples_of_one_truth_have_no_distance_and_others_have(classes: int) -> None:
    rng = np.random.default_rng(2)
    truth = rng.dirichlet(np.ones(classes))
    for _ in range(200):
        ours, theirs = rng.multinomial(3000, truth), rng.multinomial(900, truth)
        assert classes > 30 or chance.jensen_shannon(ours, theirs) < 0.03
        assert chance.largest_change(ours, theirs)[0] == 0
    moved = np.roll(truth, 1)
    assert chance.jensen_shannon(rng.multinomial(3000, moved), rng.multinomial(900, truth)) > 0.1


def test_distances_of_large_samples_are_those_of_the_shares() -> None:
    ours, theirs = np.array([800_000, 200_000]), np.array([500_000, 500_000])
    change, place = chance.largest_change(ours, theirs)
    assert change == pytest.approx(0.3, abs=0.005)
    assert place in {0, 1}
    p, q = np.array([0.8, 0.2]), np.array([0.5, 0.5])
    m = (p + q) / 2
    divergence = ((p * np.log2(p / m)).sum() + (q * np.log2(q / m)).sum()) / 2
    assert chance.jensen_shannon(ours, theirs) == pytest.approx(np.sqrt(divergence), abs=0.001)


def test_a_split_without_values_has_no_distance() -> None:
    assert chance.jensen_shannon(np.zeros(3, int), np.ones(3, int)) == 0
    assert chance.largest_change(np.zeros(3, int), np.ones(3, int))[0] == 0
