"""Steps that one loss cannot express: several objectives, a step taken over, rows made."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.steps import TOLERANCE, Train, difference
from trainer.errors import UsageError
from trainer.loop.given import of_rows
from trainer.task import Batch

TASKS = "tests.odd_tasks:"


@pytest.mark.parametrize("where", [{"cpus": 2}, {"workers": 2, "microbatches": 2}])
def test_two_objectives_are_as_exact_as_one(train: Train, where: dict[str, int]) -> None:
    one = train(task=f"{TASKS}TwoHeads")
    assert difference(train(task=f"{TASKS}TwoHeads", **where), one) <= TOLERANCE
    assert difference(one, train()) > 100 * TOLERANCE
    assert {"loss/body", "loss/head"} <= set(one["logged"])


@pytest.mark.parametrize(
    "where", [{"cpus": 2}, {"precision": "float16", "optimizer": "sgd"}, {"jit": "on"}]
)
def test_a_step_taken_over_is_reduced_scaled_and_updated_as_ever(
    train: Train, where: dict[str, object]
) -> None:
    ours, theirs = train(**where), train(task=f"{TASKS}Unhurried", **where)
    assert difference(theirs, ours) <= (TOLERANCE if "precision" not in where else 5e-3)


@pytest.mark.parametrize("where", [{"cpus": 2}, {"workers": 2}])
def test_a_task_that_makes_its_rows_needs_no_data_and_no_replica_count(
    train: Train, where: dict[str, object]
) -> None:
    one = train(task=f"{TASKS}Player", data="")
    assert one["losses"][-1] < one["losses"][0]
    assert difference(train(task=f"{TASKS}Player", data="", **where), one) <= TOLERANCE


def test_rows_that_were_not_asked_for_are_refused() -> None:
    batch = Batch({}, tf.zeros([3]), tf.ones([3]))
    with pytest.raises(
        UsageError, match=r"batches\(\): the weight is float32\(3,\): .* for 4 rows"
    ):
        of_rows(batch, 4)
    with pytest.raises(UsageError, match="batches\\(\\) returned a tuple"):
        of_rows((batch.features, batch.label), 4)
