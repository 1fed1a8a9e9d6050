"""Would this run work on a TPU? What can be told without one.

The Task is built on this machine's CPU with the run's configuration, its input and step are traced,
and the step is lowered for XLA. A partial check: XLA for a TPU knows fewer ops than XLA for a CPU,
and only the device itself can be asked. `lint` holds the differences that are known.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from trainer import files
from trainer.check.report import Finding, Report
from trainer.cluster.devices import Devices
from trainer.cluster.spec import ClusterSpec
from trainer.cluster.strategy import choose
from trainer.config import TrainConfig
from trainer.errors import EXIT_DONE, UsageError
from trainer.plan import Plan, make_plan, plan_lanes, replica_rows
from trainer.quiet import quiet_start

if TYPE_CHECKING:
    from trainer.build import Trainable

# The largest host that TensorFlow drives (v2-8, v3-8, v5e-8); a smaller one divides it.
CORES = 8
# A core works on rows in groups of 8, and its matrix unit is 128 wide: what is left over is padded.
_ROW_TILE = 8
_WIDTH_TILE = 128

_PARTIAL = (
    "a partial check: the step was compiled for XLA on this CPU, not for a TPU, which knows fewer "
    "ops; run a few steps on the TPU before you count on it"
)


def run(config: TrainConfig, spec: ClusterSpec, *, as_json: bool = False) -> int:
    """Prints what was found about a run on a TPU; returns 0.

    Raises:
      UsageError: there are problems; the findings are printed before that.
    """
    report = examine(config, spec)
    if as_json:
        print(json.dumps(report.as_json()))
    else:
        verdict = "nothing found" if report.ready else "not ready"
        print("\n".join((*report.lines(), f"TPU: {verdict}; {_PARTIAL}")))
    sys.stdout.flush()
    report.refuse("not ready for a TPU")
    return EXIT_DONE


def examine(config: TrainConfig, spec: ClusterSpec) -> Report:
    """Returns what would keep the run from a TPU, and what is good to know before.

    Errors of the Task's own code are raised as they are.
    """
    problems = _cluster(spec)
    try:
        # As on one CPU: whether this machine has a TPU is not the question.
        plan = make_plan(
            config.model_copy(update={"strategy": "one_device", "cpu_replicas": 1}), ClusterSpec()
        )
    except UsageError as error:
        return Report([*problems, _wrong(error)], ())
    problems += _batch(config, plan)
    notes = [*_places(config), *_precision(config)]
    rows = config.global_batch // CORES
    if config.global_batch % CORES == 0 and rows % _ROW_TILE:
        notes.append(
            Finding(
                f"global_batch ({config.global_batch})",
                f"gives each of {CORES} cores {rows} rows, which are padded to a multiple of "
                f"{_ROW_TILE}",
                f"choose a multiple of {CORES * _ROW_TILE}",
            )
        )
    try:
        more_problems, more_notes = _traced(plan)
    except UsageError as error:
        return Report([*problems, _wrong(error)], notes)
    return Report([*problems, *more_problems], [*notes, *more_notes])


def _wrong(error: UsageError) -> Finding:
    return Finding("the run", "does not start", str(error))


def _cluster(spec: ClusterSpec) -> list[Finding]:
    try:
        choose(spec, "tpu", Devices(tpu=True))
    except UsageError as error:
        return [_wrong(error)]
    return []


def _batch(config: TrainConfig, plan: Plan) -> list[Finding]:
    """Batch, micro-batches and lanes must be dealt to the cores."""
    try:
        if plan.lanes is None:
            replica_rows(config, CORES)
        else:
            plan_lanes(config, plan.dataset, CORES)
    except UsageError as error:
        return [Finding(f"{CORES} cores", f"cannot share this run ({error})", "change one of them")]
    return []


def _places(config: TrainConfig) -> list[Finding]:
    found = []
    if config.data and not files.is_remote(config.data):
        found.append(
            Finding(
                f"data ({config.data})",
                "is a path of this machine: the input is read by the host that the TPU hangs on "
                "(no part of it runs on the TPU itself), so it must be there under the same path",
                "copy it to that host's disk, or name a gs:// path",
            )
        )
    found.append(
        Finding(
            f"output ({config.output})",
            "is a directory of the TPU's host, whose disk goes with it when it is taken away",
            "name a mounted disk or bucket, or copy the run off the host",
        )
    )
    return found


def _precision(config: TrainConfig) -> list[Finding]:
    if config.precision == "bfloat16":
        return []
    says = "is not what a TPU is fast in: its matrix units multiply in bfloat16"
    if config.precision == "float16":
        says += ", whose range needs no loss scale"
    return [Finding(f"precision ({config.precision})", says, "pass --precision bfloat16")]


def _traced(plan: Plan) -> tuple[list[Finding], list[Finding]]:
    """Builds the Task, then looks at its input, its step and its widths."""
    with quiet_start():
        import tensorflow as tf

        from trainer.build import build
    from trainer.check import inputs, lint, lower
    from trainer.feeds import step_inputs

    trained = build(plan.config, plan.dataset, tf.distribute.OneDeviceStrategy("/CPU:0"))
    task = trained.task
    rows = max(plan.config.microbatches, plan.config.global_batch // CORES)
    batches: Any = None
    problems: list[Finding] = []
    if not task.feeds_itself:
        columns = task.columns(plan.dataset)
        specs = step_inputs(task, columns, rows)
        problems = inputs.unfit(specs)
        batches = (specs, tf.TensorSpec([rows], columns.label_dtype), tf.TensorSpec([rows]))
        if any(not _has_shape(spec) for spec in specs.values()):
            return problems, []  # there is nothing to trace the step with
        batches = tf.nest.map_structure(
            lambda spec: tf.TensorSpec([1, *spec.shape], spec.dtype), batches
        )
    config = plan.config.model_copy(update={"global_batch": rows, "jit": "off"})
    with tf.device("/CPU:0"):
        traced = lower.trace(trained.step(config), batches)
        lowered = lower.lower(traced, task)
    linted, notes = lint.lint(traced.graph, task)
    said = {finding.where for finding in linted if finding.where}
    problems += [finding for finding in lowered if finding.where not in said]
    return [*problems, *linted], [*notes, *_widths(trained)]


def _has_shape(spec: Any) -> bool:
    return hasattr(spec, "dtype") and bool(spec.shape.is_fully_defined())


def _widths(trained: Trainable) -> list[Finding]:
    kernels = [v for v in trained.task.trained_variables() if v.name == "kernel"]
    odd = sorted({int(v.shape[-1]) for v in kernels if v.shape[-1] % _WIDTH_TILE})
    if not odd:
        return []
    return [
        Finding(
            f"kernels of width {', '.join(map(str, odd))}",
            f"fill a matrix unit of {_WIDTH_TILE} in part, the rest computes zeros",
            f"choose multiples of {_WIDTH_TILE} where width is free",
        )
    ]
