"""The step: the same weights on one device, on two, in microbatches, under XLA; and what it skips.

Runs in forked processes: two logical CPUs must be configured before TensorFlow starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.datasets import make_dataset
from tests.trainer.loop import runs
from tests.workers import processes, tf_configs

TOLERANCE = 1e-6


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., dict[str, Any]]]:
    """Yields a function that runs 20 steps in processes of their own and returns the outcome."""
    root = tmp_path_factory.mktemp("step")
    for kind in ("binary", "multiclass", "regression"):
        make_dataset(root / kind, rows=3000, shards=8, kind=kind)  # type: ignore[arg-type]
    done: dict[str, dict[str, Any]] = {}

    def train(workers: int = 1, cpus: int = 1, kind: str = "binary", **options: Any) -> Any:
        key = f"{workers} {cpus} {kind} {sorted(options.items())}"
        if key not in done:
            done[key] = run(len(done), workers, cpus, kind, options)
        return done[key]

    def run(number: int, workers: int, cpus: int, kind: str, options: dict[str, Any]) -> Any:
        envs = tf_configs(workers) if workers > 1 else [{}]
        with processes() as start:
            started = [
                start(runs.run, str(root / kind), str(root / f"{number}-{rank}.npz"), cpus, options,
                      log=root / f"{number}-{rank}.log", env=env)
                for rank, env in enumerate(envs)
            ]  # fmt: skip
            for worker in started:
                worker.expect(0)
        return dict(np.load(root / f"{number}-0.npz"))

    yield train


Train = Callable[..., dict[str, Any]]


def difference(a: dict[str, Any], b: dict[str, Any]) -> float:
    return float(np.abs(a["weights"] - b["weights"]).max())


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


def test_microbatches_are_one_big_batch(train: Train) -> None:
    """keras#20582: accumulation works, and on every strategy."""
    assert difference(train(microbatches=4), train()) <= TOLERANCE
    assert difference(train(microbatches=4, cpus=2), train()) <= TOLERANCE


def test_the_length_of_a_call_changes_nothing(train: Train) -> None:
    assert difference(train(steps_per_call=7), train()) <= TOLERANCE


def test_xla_changes_nothing(train: Train) -> None:
    assert difference(train(jit="on", cpus=2), train()) <= TOLERANCE


def test_the_global_gradient_is_clipped(train: Train) -> None:
    """TF#33929, TF#25806: not each replica's before the reduce."""
    clipped = train(clip_norm=0.05, cpus=2, optimizer="sgd")
    assert difference(clipped, train(clip_norm=0.05, optimizer="sgd")) <= TOLERANCE
    assert difference(clipped, train(optimizer="sgd")) > 100 * TOLERANCE


def test_the_reported_loss_is_the_global_mean(train: Train) -> None:
    """keras#15509: not the first replica's."""
    assert train(cpus=2)["losses"] == pytest.approx(train()["losses"], abs=TOLERANCE)


@pytest.mark.parametrize("where", [{"cpus": 2}, {"workers": 2}])
def test_an_infinity_in_one_replica_is_skipped_by_all(train: Train, where: dict[str, int]) -> None:
    """keras#18666, torchtitan PR#4226: no NaN weights, no hang, the step is counted."""
    outcome = train(infinity_at=5, **where)
    assert np.isfinite(outcome["weights"]).all()
    assert outcome["skipped"] == 1
    assert difference(outcome, train(infinity_at=5)) <= TOLERANCE
    assert difference(outcome, train()) > TOLERANCE


def test_a_penalty_counts_once_a_global_batch(train: Train) -> None:
    one = train(l2=0.1)
    assert difference(train(l2=0.1, cpus=2, microbatches=2), one) <= TOLERANCE
    assert difference(one, train()) > 100 * TOLERANCE


def test_dropout_builds_in_scope_and_masks_differ_between_replicas(train: Train) -> None:
    """keras#20611: replicas with equal rows would draw the same mask from Keras' mirrored seed."""
    outcome = train(cpus=2, dropout=0.5)
    assert np.isfinite(outcome["weights"]).all()
    first, second = outcome["masks"]
    assert (first != second).any()
    assert difference(outcome, train(cpus=2, dropout=0.5, steps_per_call=7)) <= TOLERANCE


def test_predictions_hold_each_row_once_on_any_number_of_replicas(train: Train) -> None:
    """TF#61231, TF#37112: a tail that does not fill the replicas neither hangs nor repeats."""
    one, two, workers = train(), train(cpus=2), train(workers=2)
    assert one["row_id"].tolist() == sorted(set(one["row_id"].tolist()))
    assert len(one["row_id"]) == 300
    for other in (two, workers):
        assert other["row_id"].tolist() == one["row_id"].tolist()
        assert np.abs(other["outputs"] - one["outputs"]).max() <= TOLERANCE
        assert other["labels"].tolist() == one["labels"].tolist()
