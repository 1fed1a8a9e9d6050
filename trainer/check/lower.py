"""Compiles one training step for XLA without running it: what XLA knows nothing of is named.

For XLA on this CPU: lowering for a TPU needs the TPU. It stops at the first function with such an
op, so what is behind it shows at the next check (`lint` knows the usual ones by name).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from trainer.check.graph import operations, origin
from trainer.check.report import Finding
from trainer.loop.step import TrainStep
from trainer.task import Task

_UNKNOWN = re.compile(r"No registered '(\w+)' OpKernel for [^{]*\{\{node ([^}]+)\}\}")
_NODE = re.compile(r"\{\{node ([^}]+)\}\}")
_WRAPPING = re.compile(r"^Failed getting HLO text: '?")
# An error of XLA's may go on for pages.
_LONGEST_REASON = 200

_DO = "do it in preprocess, which runs on the host, or with another op"


@dataclass(frozen=True)
class TracedStep:
    """graph: of one training step. compile(): lowers it for XLA, raises what XLA says."""

    graph: Any
    compile: Callable[[], Any]


def trace(step: TrainStep, batches: Any) -> TracedStep:
    """Traces one step.

    Args:
      step: of one replica, not compiled itself.
      batches: specs of (features, label, weight), each [1, rows, …]; None if the task feeds
        itself.

    Raises:
      UsageError: what the Task gets wrong when it is traced.
    """
    # Specs of dictionaries are not lowered; values are, and only their shapes count.
    arguments = tf.nest.map_structure(lambda spec: tf.zeros(spec.shape, spec.dtype), batches or ())

    def one(*batches: Any) -> tf.Tensor:
        numbers = {"first": 0, "count": 1, "step": 0}
        return step(batches or None, **numbers, nonfinite_run=tf.constant(0)).losses

    function = tf.function(one, jit_compile=True, autograph=False)
    lowered = function.experimental_get_compiler_ir
    return TracedStep(
        function.get_concrete_function(*arguments).graph,
        lambda: lowered(*arguments)(stage="hlo", platform_name="CPU"),
    )


def lower(traced: TracedStep, task: Task) -> list[Finding]:
    """Returns what keeps XLA from compiling the step."""
    try:
        traced.compile()
    except (ValueError, tf.errors.OpError) as error:
        return _findings(str(error), traced.graph, task)
    return []


def _findings(message: str, graph: Any, task: Task) -> list[Finding]:
    ops = {op.name: op for op in operations(graph)}
    found: dict[tuple[str, str | None], Finding] = {}
    for kind, node in _UNKNOWN.findall(message):
        if kind == "_Arg":
            return []  # a string that comes in: `inputs` speaks of it
        where = origin(ops[node], task) if node in ops else None
        says = "is unknown to XLA, which makes the step for a TPU"
        found.setdefault((kind, where), Finding(kind, says, _DO, where))
    known = {kind for kind, where in found if where}
    # The backward pass repeats it, on no line of the user's.
    findings = [f for (kind, where), f in found.items() if where or kind not in known]
    if findings:
        return findings
    node = next((name for name in _NODE.findall(message) if name in ops), None)
    where = origin(ops[node], task) if node else None
    reason = _WRAPPING.sub("", message.strip()).splitlines()[0][:_LONGEST_REASON]
    about = f"{ops[node].type}" if node else "the step"
    return [Finding(about, f"cannot be compiled by XLA ({reason})", _DO, where)]
