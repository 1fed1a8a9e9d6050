"""The step: the same weights on one device, on two, in calls of any length, under XLA."""

from __future__ import annotations

import pytest

from tests.steps import TOLERANCE, Train, difference


def test_two_logical_cpus_give_the_weights_of_one_device(train: Train) -> None:
    assert difference(train(cpus=2), train()) <= TOLERANCE


def test_two_processes_give_the_weights_of_one_device(train: Train) -> None:
    assert difference(train(workers=2), train()) <= TOLERANCE


@pytest.mark.parametrize("kind", ["multiclass", "regression"])
def test_other_kinds_of_label_are_as_exact(train: Train, kind: str) -> None:
    assert difference(train(kind=kind, cpus=2), train(kind=kind)) <= TOLERANCE


def test_training_moves_the_weights_and_lowers_the_loss(train: Train) -> None:
    outcome = train()
    assert outcome["losses"][-1] < 0.8 * outcome["losses"][0]


def test_the_length_of_a_call_changes_nothing(train: Train) -> None:
    assert difference(train(steps_per_call=7), train()) <= TOLERANCE


def test_xla_changes_nothing(train: Train) -> None:
    assert difference(train(jit="on", cpus=2), train()) <= TOLERANCE


def test_a_penalty_counts_once_a_global_batch(train: Train) -> None:
    one = train(l2=0.1)
    assert difference(train(l2=0.1, cpus=2, microbatches=2), one) <= TOLERANCE
    assert difference(one, train()) > 100 * TOLERANCE
