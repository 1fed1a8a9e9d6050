"""Why the very first steps were not finite: which method gave what."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from trainer.errors import UsageError
from trainer.task import Batch, Task


def explain(task: Task, strategy: tf.distribute.Strategy, batches: Any) -> None:
    """Looks at this process's rows of the first batch, and returns if their losses are finite.

    (Then it was gradients that overflowed, which a loss scale or clipping may still settle.)

    Raises:
      UsageError: what `preprocess` returned has NaN or infinity, or a loss has.
    """
    if batches is None:
        return
    local = tf.nest.map_structure(
        lambda value: strategy.experimental_local_results(value)[0][0], batches
    )
    batch = Batch(*local)
    for name, value in batch.features.items():
        if value.dtype.is_floating and (bad := _bad(value)):
            raise UsageError(
                f"preprocess: {name!r} has {bad} values on the first batch that are no numbers "
                "(NaN or infinite): fill missing values there"
            )
    for objective in task.objectives():
        loss = objective.loss(batch, True)
        if bad := _bad(loss):
            raise UsageError(
                f"objective {objective.name!r}: the loss of {bad} of {len(loss)} rows of the first "
                "batch is no number (NaN or infinite): return finite values (a log or a division "
                "of zero is the usual reason)"
            )


def _bad(value: tf.Tensor) -> int:
    return int(np.sum(~np.isfinite(tf.cast(value, tf.float32).numpy())))
