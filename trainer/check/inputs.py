"""What reaches the step from the host: a TPU takes numbers of a known shape, and nothing else."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from trainer.check.report import Finding, Report
from trainer.data.input import Columns
from trainer.feeds import step_inputs
from trainer.task import Task


def unfit(specs: dict[str, Any]) -> list[Finding]:
    """Returns what of `specs` cannot travel to a TPU."""
    found = []
    for name, spec in specs.items():
        about = f"feature {name!r} of preprocess"
        if not isinstance(spec, tf.TensorSpec):
            kind = type(spec).__name__.removesuffix("Spec")
            says = f"is a {kind}, and a TPU takes tensors of a known shape only"
            found.append(Finding(about, says, "pad it there: value.to_tensor(shape=[None, N])"))
        elif spec.dtype == tf.string:
            says = "is a string, and strings cannot travel to a TPU"
            do = "encode it there, as numbers (a vocabulary is in data.statistics)"
            found.append(Finding(about, says, do))
        elif spec.dtype == tf.float64:
            says = "is float64, which a TPU does not have"
            found.append(Finding(about, says, "cast it there to float32"))
        elif not spec.shape.is_fully_defined():
            says = f"has no static shape ({spec.shape}), and a TPU wants every size to be known"
            found.append(Finding(about, says, "pad or cut it there, and tf.ensure_shape says so"))
    return found


def refuse_unfit(task: Task, columns: Columns, rows: int) -> None:
    """Raises UsageError if what `preprocess` returns cannot travel to a TPU, before anything runs.

    rows: of one core in a step.
    """
    Report(unfit(step_inputs(task, columns, rows)), ()).refuse("strategy (tpu)")
