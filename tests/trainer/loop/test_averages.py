"""What is averaged: weights over steps, statistics of a layer over replicas."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.steps import TOLERANCE, Train, difference
from trainer.loop.ema import Ema


def test_the_average_follows_the_formula_and_gives_its_place_back() -> None:
    weight = tf.Variable([1.0, 2.0])
    ema = Ema({"w": weight}, 0.9)
    expected = np.array([1.0, 2.0])
    for n in range(1, 30):
        weight.assign_add([1.0, -1.0])
        ema.follow(tf.constant(n, tf.int64))
        expected += (1 - min(0.9, (1 + n) / (10 + n))) * (weight.numpy() - expected)
    assert ema.variables["ema/w"].numpy() == pytest.approx(expected, rel=1e-5)
    before = weight.numpy()
    with ema.in_place():
        assert weight.numpy() == pytest.approx(expected, rel=1e-5)
    assert weight.numpy().tolist() == before.tolist()


@pytest.mark.parametrize("where", [{"cpus": 2}, {"workers": 2}])
def test_replicas_average_alike(train: Train, where: dict[str, int]) -> None:
    one, other = train(ema_decay=0.9), train(ema_decay=0.9, **where)
    assert np.abs(one["averages"] - other["averages"]).max() <= TOLERANCE
    assert np.abs(one["averages"] - one["weights"]).max() > 100 * TOLERANCE
    assert difference(one, train()) <= TOLERANCE  # who averages trains the same


def test_a_skipped_step_moves_no_average(train: Train) -> None:
    outcome = train(ema_decay=0.9, infinity_at=5, cpus=2)
    assert np.isfinite(outcome["averages"]).all()


def test_synchronised_normalisation_is_exact(train: Train) -> None:
    task = "tests.odd_tasks:Synchronized"
    assert difference(train(task=task, cpus=2), train(task=task)) <= 5e-6


def test_statistics_of_replicas_are_averaged_when_that_is_asked_for(train: Train) -> None:
    """Only the first replica's would be saved otherwise."""
    task = "tests.odd_tasks:Drifting"
    mirrored = train(task=task, cpus=2, batch_norm="averaged")
    workers = train(task=task, workers=2, batch_norm="averaged")
    assert difference(mirrored, workers) <= 5e-6
    assert difference(mirrored, train(task=task)) > 1e-4  # each normalised with its own rows
