"""Runs a trained model over a whole split, on one device or several, and checks what came out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from components.run_data import task_for
from trainer.cluster import strategy as strategies
from trainer.cluster.devices import find_devices
from trainer.cluster.spec import ClusterSpec
from trainer.data.dataset import Dataset
from trainer.data.weighting import weighted
from trainer.loop.predict import Predictions, predict
from trainer.run.choice import Which
from trainer.trained import Trained, load


@dataclass(frozen=True)
class Predicted:
    """A run and what it says of every row of a split."""

    trained: Trained
    predictions: Predictions


def make_strategy(cpu_replicas: int) -> tf.distribute.Strategy:
    """Returns a strategy for this process alone; call it before any other TensorFlow op."""
    spec = ClusterSpec()
    choice = strategies.choose(spec, "auto", find_devices(), cpu_replicas)
    # Both limits are about peers, of which there are none.
    return strategies.build(
        choice, spec, heartbeat_timeout_seconds=10, collective_timeout_seconds=300
    )


def predict_split(
    run: str,
    strategy: tf.distribute.Strategy,
    dataset: Dataset,
    split: str,
    *,
    step: Which,
    batch: int,
    progress: Callable[[int, int], None],
) -> Predicted:
    """Returns the run's outputs for each row of the split, exactly once, by ascending row id.

    Raises:
      UsageError: no run, no whole checkpoint, or a data set that does not fit the run.
    """
    with strategy.scope():
        trained = load(run, step=step, data=dataset.path)
    dataset = weighted(dataset, trained.config.weight_column)
    task = task_for(trained, dataset)
    predictions = predict(task, strategy, dataset, split, batch=batch, progress=progress)
    check_once(predictions.row_id, dataset.split(split).rows)
    return Predicted(trained, predictions)


def check_once(row_id: Any, rows: int) -> None:
    """Checks that there is one prediction a row; anything else is a fault of ours."""
    if len(row_id) != rows or len(np.unique(row_id)) != rows:
        raise AssertionError(
            f"{len(row_id)} predictions of {len(np.unique(row_id))} distinct rows, "
            f"but the split has {rows} rows"
        )
