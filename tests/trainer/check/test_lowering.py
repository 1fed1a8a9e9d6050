"""What lowering a function for XLA names, and what it misses: an upgrade of TensorFlow tells here.

The lint of `trainer.check` exists for what is missed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf

Body = Callable[[tf.Tensor], tf.Tensor]


def lower(body: Body, argument: Any = None) -> str:
    """Returns the HLO of `body` for XLA on a CPU."""
    function = tf.function(body, jit_compile=True, autograph=False)
    value = tf.ones([8]) if argument is None else argument
    return str(function.experimental_get_compiler_ir(value)(stage="hlo", platform_name="CPU"))


def looked_up(x: tf.Tensor) -> tf.Tensor:
    with tf.init_scope():
        pairs = tf.lookup.KeyValueTensorInitializer([1, 2], [1.0, 2.0])
        table = tf.lookup.StaticHashTable(pairs, 0.0)
    return table.lookup(tf.cast(x, tf.int32))


def parsed(record: tf.Tensor) -> tf.Tensor:
    return tf.io.parse_single_example(record, {"a": tf.io.FixedLenFeature([], tf.float32, 0.0)})[
        "a"
    ]


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (lambda x: tf.strings.to_number(tf.strings.as_string(x)), "AsString"),
        (lambda x: tf.py_function(lambda v: v, [x], tf.float32), "EagerPyFunc"),
        (lambda x: tf.numpy_function(lambda v: v, [x], tf.float32), "PyFunc"),
        (looked_up, "LookupTableFindV2"),
        (
            lambda x: tf.sparse.sparse_dense_matmul(
                tf.SparseTensor([[0, 0], [1, 1]], [1.0, 2.0], [2, 8]), x[:, None]
            ),
            "SparseTensorDenseMatMul",
        ),
    ],
)
def test_lowering_names_what_xla_does_not_know(body: Body, named: str) -> None:
    with pytest.raises(ValueError, match=rf"No registered '{named}\w*' OpKernel"):
        lower(body)


def test_lowering_names_a_dynamic_batch_dimension() -> None:
    with pytest.raises(ValueError, match="shape"):
        lower(lambda x: x * 2, tf.TensorSpec([None, 3]))


def test_lowering_names_strings_that_come_in_not_what_parses_them() -> None:
    with pytest.raises(ValueError, match="No registered '_Arg' OpKernel"):
        lower(parsed, tf.constant(b""))


@pytest.mark.parametrize(
    "body",
    [
        lambda x: tf.boolean_mask(x, x > 0.5),
        lambda x: tf.where(x > 0.5),
        lambda x: tf.unique(tf.cast(x, tf.int32))[0],
        lambda x: tf.sparse.to_dense(tf.SparseTensor([[0], [1]], [1.0, 2.0], [8])) + x,
        lambda x: tf.cast(tf.cast(x, tf.float64) * 2, tf.float32),
        lambda x: x * tf.random.uniform(x.shape),
        lambda x: x + tf.cast(tf.strings.length(tf.io.read_file(__file__)), tf.float32),
        lambda x: x + parsed(tf.constant(b"")),
        lambda x: tf.reduce_sum(tf.RaggedTensor.from_row_lengths(x, [3, 5]), axis=1),
    ],
    ids=[
        "boolean_mask",
        "where",
        "unique",
        "sparse",
        "float64",
        "random",
        "file",
        "parse",
        "ragged",
    ],
)
def test_lowering_misses_what_the_lint_is_for(body: Body) -> None:
    assert "HloModule" in lower(body)
