"""What is refused before TensorFlow is imported, about data that is or is not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.datasets import make_dataset
from trainer.cluster.spec import ClusterSpec
from trainer.config import TrainConfig
from trainer.errors import UsageError
from trainer.plan import Plan, make_plan

OWN = "tests.odd_tasks:Player"


def plan(output: Path, **keys: Any) -> Plan:
    return make_plan(TrainConfig(output=str(output / "run"), **keys), ClusterSpec())


def test_a_task_that_may_feed_itself_needs_no_data_but_steps(tmp_path: Path) -> None:
    made = plan(tmp_path, task=OWN, steps=5)
    assert made.dataset.is_nothing
    assert made.lanes is None
    with pytest.raises(UsageError, match="steps is required: without --data there are no epochs"):
        plan(tmp_path, task=OWN)
    with pytest.raises(UsageError, match=r"microbatches \(3\) do not divide the 64 rows"):
        plan(tmp_path, task=OWN, steps=5, global_batch=192, microbatches=3, cpu_replicas=3)


def test_a_built_in_task_needs_data(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="data is required: the tabular task reads it"):
        plan(tmp_path, steps=5)


def test_the_split_that_is_evaluated_on_the_way_must_be_there(tmp_path: Path) -> None:
    make_dataset(tmp_path / "data", rows=200)
    data = str(tmp_path / "data")
    with pytest.raises(UsageError, match=r"split 'dev' is not in .*: it has eval, test, train"):
        plan(tmp_path, data=data, eval_every=10, eval_split="dev")
    assert plan(tmp_path, data=data, eval_split="dev").config.steps
