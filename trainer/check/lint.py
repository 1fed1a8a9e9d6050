"""Ops of the step that a TPU does not take, or takes with a surprise.

Lowering (`lower`) names what XLA knows nothing of, but one function at a time, and it lets pass
what only a CPU can do and what it can compute beforehand (a file's content!). Pinned in
tests/trainer/check/test_lowering.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from trainer.check.graph import is_ours, operations, origin
from trainer.check.report import Finding
from trainer.task import Task

_UNIQUE = ("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")
_FILES = ("ReadFile", "MatchingFiles", "WholeFileReaderV2", "TFRecordReaderV2", "WriteFile")
_HOST_ONLY = ("PyFunc", "EagerPyFunc", "LookupTable", "HashTable", "ParseExample", "ParseSingle")
# Strings pass by in these without being worked on; an assertion's text is dropped.
_CARRY_STRINGS = (
    "Const", "Placeholder", "Identity", "Assert", "While", "StatelessWhile", "If", "StatelessIf",
    "PartitionedCall", "StatefulPartitionedCall",
)  # fmt: skip
_RANDOM = (
    "RandomUniform", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal",
    "ParameterizedTruncatedNormal", "RandomGamma", "RandomPoissonV2", "RandomShuffle",
    "Multinomial", "RngReadAndSkip", "StatefulUniform", "StatefulStandardNormalV2",
)  # fmt: skip
# Neither works on a SparseTensor, whatever the name says.
_NOT_SPARSE = ("SparseSoftmaxCrossEntropyWithLogits", "SparseMatMul")


@dataclass(frozen=True)
class _Rule:
    """matches(op): whether the rule speaks of it. problem: whether a run fails of it.

    vague: what another rule says of the same line is enough.
    """

    matches: Callable[[Any], bool]
    says: str
    do: str
    problem: bool = True
    vague: bool = False


def _is_sparse(op: Any) -> bool:
    return op.type.startswith("Sparse") and op.type not in _NOT_SPARSE


def _has_strings(op: Any) -> bool:
    values = (*op.inputs, *op.outputs)
    return op.type not in _CARRY_STRINGS and any(v.dtype.base_dtype == tf.string for v in values)


def _is_float64(op: Any) -> bool:
    return any(output.dtype.base_dtype == tf.float64 for output in op.outputs)


_RULES = (
    _Rule(
        lambda op: op.type in _FILES,
        "reads or writes files, which the TPU cannot see",
        "do it in build or preprocess, on the host",
    ),
    _Rule(
        lambda op: op.type.startswith(_HOST_ONLY),
        "runs on a host only",
        "do it in preprocess",
    ),
    _Rule(
        _has_strings,
        "works on strings, which a TPU does not have",
        "do it in preprocess",
        vague=True,
    ),
    _Rule(
        lambda op: op.type == "Where",
        "has as many rows as are true, and a TPU wants every shape to be known (boolean_mask, "
        "tf.where with one argument and ragged tensors are made of it)",
        "keep all rows and give those that do not count a weight of 0, or use "
        "tf.where(condition, a, b)",
    ),
    _Rule(
        lambda op: op.type in _UNIQUE,
        "has as many values as differ, and a TPU wants every shape to be known",
        "do it in preprocess, on the host, and pad the result",
    ),
    _Rule(
        _is_sparse,
        "works on a sparse tensor, which a TPU does not have",
        "make it dense in preprocess, or use an Embedding",
    ),
    _Rule(
        _is_float64,
        "computes in float64, which a TPU does not have",
        "cast to float32",
    ),
    _Rule(
        lambda op: op.type in _RANDOM,
        "draws from a state of its own: a resumed run, or one on more cores, draws something else",
        "use tf.random.stateless_* with a seed from the step and the row's place",
        problem=False,
    ),
)


def lint(graph: Any, task: Task) -> tuple[list[Finding], list[Finding]]:
    """Returns problems and notes about the ops of a traced step, one for each rule and line."""
    found: dict[tuple[int, str | None], Finding] = {}
    for op in operations(graph):
        for number, rule in enumerate(_RULES):
            if rule.matches(op) and not is_ours(op):
                where = origin(op, task)
                found.setdefault((number, where), Finding(op.type, rule.says, rule.do, where))
    # The backward pass repeats what the forward pass says, and stands on no line of the user's.
    known = {number for number, where in found if where}
    told = {where for number, where in found if not _RULES[number].vague}
    kept = {
        (number, where): finding
        for (number, where), finding in found.items()
        if (where or number not in known) and not (_RULES[number].vague and where in told)
    }
    return (
        [f for (number, _), f in kept.items() if _RULES[number].problem],
        [f for (number, _), f in kept.items() if not _RULES[number].problem],
    )
