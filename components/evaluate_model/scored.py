"""Labels, weights and outputs of the rows of a split: what every figure is computed from.

Checks here that a model's outputs are figures at all, so that nothing below meets a NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.data.manifest import Label, LabelKind
from trainer.errors import UsageError

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Scored:
    """n rows. label, weight: float64 [n] (multiclass: the class index).

    output: float64 [n], the probability of the positive class or the predicted value; multiclass
    float64 [n, classes], the probability of each class.
    """

    kind: LabelKind
    label: Floats
    weight: Floats
    output: Floats

    @property
    def rows(self) -> int:
        """Number of rows n."""
        return len(self.label)

    def take(self, mask: npt.NDArray[np.bool_]) -> Scored:
        """Returns the rows where `mask` [n] is true."""
        return Scored(self.kind, self.label[mask], self.weight[mask], self.output[mask])

    def weighted(self) -> Scored:
        """Returns the rows that count."""
        return self if np.all(self.weight > 0) else self.take(self.weight > 0)

    @property
    def chosen(self) -> npt.NDArray[np.int64]:
        """The predicted class of each row [n]; binary: 1 from probability 0.5 on."""
        if self.kind == "binary":
            return (self.output >= 0.5).astype(np.int64)
        return np.argmax(self.output, axis=1).astype(np.int64)


def scored(
    label: Label, values: Any, weight: Any, outputs: Mapping[str, npt.NDArray[Any]]
) -> Scored:
    """Returns checked rows from what a Task served.

    Args:
      label: the label column: its kind and classes.
      values: the label of each row [n].
      weight: how much each row counts [n].
      outputs: of `Task.serve`, each [n, …].

    Raises:
      UsageError: the output that evaluation reads is not there, has another shape, is not finite
        or is no probability.
    """
    name = label.output
    if name not in outputs:
        there = ", ".join(sorted(outputs)) or "nothing"
        raise UsageError(
            f"the task serves {there}: evaluating a {label.kind} label needs {name!r} "
            "(see Task.serve)"
        )
    output = np.asarray(outputs[name], np.float64)
    rows = len(values)
    wanted = (rows, len(label.classes or ())) if label.kind == "multiclass" else (rows,)
    if output.shape != wanted:
        raise UsageError(
            f"the task serves {name!r} with shape {list(output.shape)}: evaluating a "
            f"{label.kind} label of {rows} rows needs {list(wanted)}"
        )
    broken = int(np.sum(~np.isfinite(output).reshape(rows, -1).all(axis=1)))
    if broken:
        raise UsageError(
            f"{name!r} is not finite in {broken} of {rows} rows: the model diverged; "
            "train it again with a lower learning_rate"
        )
    if label.kind != "regression" and rows and (output.min() < -1e-6 or output.max() > 1 + 1e-6):
        raise UsageError(
            f"{name!r} runs from {output.min():g} to {output.max():g}: a probability is between "
            "0 and 1 (does the task serve logits?)"
        )
    return Scored(
        label.kind, np.asarray(values, np.float64), np.asarray(weight, np.float64), output
    )
