"""A model whose outputs are no figures is refused in one line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from components.evaluate_model.scored import scored
from trainer.data.manifest import Label
from trainer.errors import UsageError

BINARY = Label(name="y", kind="binary", classes=(0, 1))
MULTICLASS = Label(name="y", kind="multiclass", classes=("a", "b", "c"))
LABELS = np.array([0, 1, 1, 0], np.float32)


@pytest.mark.parametrize(
    ("label", "outputs", "says"),
    [
        (BINARY, {"logits": np.zeros(4)}, "serves logits: .* needs 'probability'"),
        (BINARY, {"probability": np.zeros((4, 1))}, r"shape \[4, 1\].* needs \[4\]"),
        (BINARY, {"probability": np.array([0.1, np.nan, 0.2, np.inf])}, "in 2 of 4 rows"),
        (BINARY, {"probability": np.array([-3.0, 4, 0, 1])}, "from -3 to 4.*logits"),
        (MULTICLASS, {"probabilities": np.full((4, 2), 0.5)}, r"needs \[4, 3\]"),
    ],
)
def test_outputs_that_cannot_be_evaluated(label: Label, outputs: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says) as raised:
        scored(label, LABELS, np.ones(4), outputs)
    assert "\n" not in str(raised.value)
