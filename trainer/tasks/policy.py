"""The arithmetic of a Task's layers: sixteen bits, while weights stay float32."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import keras

_POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}


@contextmanager
def policy(precision: str) -> Iterator[None]:
    """Makes layers that are created inside compute in `precision` (float32, bfloat16, float16).

    A last layer made with dtype="float32" gives a loss all its digits.
    """
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(_POLICIES[precision])
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
