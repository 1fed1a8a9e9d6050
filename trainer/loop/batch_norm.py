"""Layers that keep statistics of their own on each replica, and what is done about them.

An unsynchronised BatchNormalization normalises with its replica's rows and moves averages that only
the first replica saves. Either it is refused, or those averages are averaged over the replicas
before anybody reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from trainer.errors import UsageError
from trainer.task import Task


def drifting(task: Task) -> dict[str, Any]:
    """Returns the layers with statistics of one replica, by attribute and layer name."""
    return {
        f"{attribute}/{layer.name}": layer
        for attribute, model in task.models().items()
        for layer in model._flatten_layers()
        if isinstance(layer, keras.layers.BatchNormalization)
        and layer.trainable
        and not layer.synchronized
    }


def settle(task: Task, strategy: tf.distribute.Strategy, rule: str) -> Callable[[], None]:
    """Returns what makes the statistics equal on all replicas; a collective, called by all.

    Raises:
      UsageError: there are such layers, several replicas, and `rule` is not "averaged".
    """
    layers = drifting(task)
    replicas = strategy.num_replicas_in_sync
    if not layers or replicas == 1:
        return lambda: None
    if rule != "averaged":
        raise UsageError(
            f"layer {next(iter(layers))}: BatchNormalization drifts between {replicas} replicas: "
            "make it with synchronized=True, or pass --batch-norm averaged"
        )
    moving = [
        v.value for layer in layers.values() for v in (layer.moving_mean, layer.moving_variance)
    ]

    @tf.function(autograph=False)
    def average() -> None:
        def one() -> None:
            context = tf.distribute.get_replica_context()
            here = [tf.identity(tf.convert_to_tensor(v)) for v in moving]
            for variable, mean in zip(
                moving, context.all_reduce(tf.distribute.ReduceOp.MEAN, here), strict=True
            ):
                variable.assign(mean)

        strategy.run(one)

    return average
