"""Where a side trains: one device, two logical CPUs, or two processes, each on a core of its own.

Built as TensorFlow's guides do it. Ours takes `trainer.cluster.strategy` instead (see `ours`).
"""

import json
import os
from typing import Any

WORKERS = {"one_device": 1, "mirrored": 1, "multi_worker": 2}


def rank() -> int:
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    return int(config["task"]["index"]) if config else 0


def strategy(place: str) -> Any:
    import tensorflow as tf

    if place == "one_device":
        return tf.distribute.get_strategy()
    if place == "multi_worker":
        return tf.distribute.MultiWorkerMirroredStrategy()
    cpu = tf.config.list_physical_devices("CPU")[0]
    pieces = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, pieces)
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def distributed(strategy: Any, case: Any) -> Any:
    """Returns the case's rows as `strategy` wants them, each replica its part of the batch."""
    import tensorflow as tf

    from tests.benchmarks.steps.case import PREFETCH_STEPS

    replicas = strategy.num_replicas_in_sync
    if replicas == 1:
        return case.batches().prefetch(PREFETCH_STEPS)

    def pipeline(context: tf.distribute.InputContext) -> tf.data.Dataset:
        rows = case.batches(context.input_pipeline_id, context.num_input_pipelines, replicas)
        here = context.num_replicas_in_sync // context.num_input_pipelines
        return rows.prefetch(PREFETCH_STEPS * here)

    return strategy.distribute_datasets_from_function(pipeline)
