"""What workers of the checkpoint tests do: save, restore, alone or under a strategy.

TensorFlow and what imports it come inside the functions: a fork has them warm.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.workers import processes

ROWS = 50_000
# 20 MB: most of the time is spent on writing, so that a kill comes in the middle of it.
MANY_ROWS = 2_500_000


def make_variables(value: int, rows: int = ROWS) -> dict[str, Any]:
    """Variables of several kinds, all filled with `value`."""
    import tensorflow as tf

    variables = {
        "model/0000/dense/kernel:0": tf.Variable(tf.fill([rows, 2], float(value))),
        "optimizer/loss/0000/iterations": tf.Variable(value, dtype=tf.int64),
    }
    if "TF_CONFIG" not in os.environ:
        # Several workers cannot even create these: a new variable is broadcast, and TensorFlow
        # has no broadcast for them.
        variables |= {
            "other/0000/scale": tf.Variable(tf.fill([3], tf.cast(value, tf.bfloat16))),
            "other/0001/words": tf.Variable([str(value), "b"]),
        }
    return variables


def save_steps(directory: str, steps: Iterable[int], keep: int, rows: int = ROWS) -> None:
    from trainer.run import checkpoint

    for step in steps:
        commit = checkpoint.save(
            directory, step, make_variables(step, rows), {"task": "tabular"}, keep=keep
        )
        assert (commit.step, commit.meta) == (step, {"task": "tabular"})


def restores(directory: str, step: int, rows: int = ROWS) -> None:
    """Checks that the newest whole checkpoint is of `step` and has its values."""
    from trainer.run import checkpoint

    commit = checkpoint.latest(directory, print)
    assert commit is not None
    assert commit.step == step, commit
    variables = make_variables(-1, rows)
    checkpoint.restore(commit, variables)
    for name, expected in make_variables(step, rows).items():
        np.testing.assert_array_equal(variables[name].numpy(), expected.numpy(), name)


def run(target: Any, *args: Any, log: Path, env: dict[str, str] | None = None) -> str:
    with processes() as start:
        return start(target, *args, log=log, env=env).expect(0)


def restore_under(directory: str, kind: str) -> None:
    """Restores inside and outside the strategy's scope; all copies of a variable get the values."""
    import tensorflow as tf

    from trainer.cluster.resolve import resolve
    from trainer.cluster.strategy import build, choose
    from trainer.run import checkpoint

    spec = resolve(os.environ)
    replicas = 2 if kind == "mirrored" else 1
    strategy = build(
        choose(spec, kind, cpu_replicas=replicas),
        spec,
        heartbeat_timeout_seconds=10,
        collective_timeout_seconds=60,
    )
    commit = checkpoint.commit_at(directory, 30)

    def check(variables: dict[str, Any]) -> None:
        for name, expected in make_variables(30).items():
            for copy in strategy.experimental_local_results(variables[name]):
                np.testing.assert_array_equal(copy.numpy(), expected.numpy(), name)

    with strategy.scope():
        inside, outside = make_variables(-1), make_variables(-1)
        checkpoint.restore(commit, inside)
    check(inside)
    with strategy.scope():
        metric = tf.Variable(
            0.0,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )
    if kind == "multi_worker" and spec.rank == 1:
        return  # The other one needs nobody for what follows.
    checkpoint.restore(commit, outside)
    check(outside)
    own = f"{directory}-{kind}"
    checkpoint.save(own, 7, outside, {}, keep=1)
    loaded = make_variables(-1)
    checkpoint.restore(checkpoint.commit_at(own, 7), loaded)
    assert float(tf.reduce_min(loaded["model/0000/dense/kernel:0"])) == 30
    if kind != "one_device":  # one device has no such variables
        with pytest.raises(ValueError, match="aggregated on reading"):
            checkpoint.save(own, 8, {"metric": metric}, {}, keep=1)
