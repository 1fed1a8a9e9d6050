"""`--verify-scaling K`: do several replicas learn what one learns?

K steps on one replica of this machine, then on all replicas of the cluster, from the same first
weights and over the same rows (their order does not depend on replicas). What may differ is the
order of additions; a loss that looks at the other rows of its replica, or statistics that replicas
keep for themselves, differ by far more.

Layers that draw at random draw something else on each replica, by design. They are compared as in
serving, without drawing, and named. Nothing is written into the run directory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import tensorflow as tf

from trainer.build import build
from trainer.config import TrainConfig
from trainer.errors import EXIT_DONE, CastellError, Stopped, UsageError
from trainer.feeds import local_replicas, most_steps, start_feeds
from trainer.loop import diagnose, seeds
from trainer.loop.agree import make_agree
from trainer.loop.loop import Hooks, Loop, Metrics
from trainer.plan import Plan
from trainer.run import faults
from trainer.together import Joined, losses_named, together

# Float32 sums in another order part by 1e-7 of a weight a step; a fault moves weights by a learning
# rate (1e-3) a step. Between them.
TOLERANCE = 1e-4
# Sixteen bits hold 2 to 3 digits of each product, and their errors depend on how rows are grouped.
TOLERANCE_16_BITS = 5e-3


class ScalesWrongly(CastellError):
    """Several replicas learned something else than one."""


@dataclass(frozen=True)
class Trained:
    """loss: the mean over the steps. weights: paths and values. silenced: layers that draw."""

    loss: float
    weights: Sequence[tuple[str, Any]]
    silenced: Sequence[str]


@dataclass(frozen=True)
class Difference:
    """loss: absolute, for losses below 1, else relative. weight: the largest. name: of whom."""

    loss: float
    weight: float
    name: str

    def exceeds(self, tolerance: float) -> bool:
        """Whether one of them does; what is no number does."""
        return not (self.loss <= tolerance and self.weight <= tolerance)


def verify(plan: Plan, steps: int, tolerance: float | None) -> None:
    """Compares one replica with all; every worker of the cluster calls it.

    Args:
      plan: of the run.
      steps: how many.
      tolerance: the largest difference allowed; None: what the precision deserves.

    Raises:
      ScalesWrongly: on the chief, the difference is larger.
      CastellError: as in training.
    """
    if tolerance is None:
        tolerance = default_tolerance(plan.config)
    fingerprint = f"{plan.fingerprint}, verifying {steps} steps"
    with (
        together(plan, fingerprint, _peer_lost) as joined,
        losses_named(plan.spec, joined.line),
    ):
        _verify(plan, joined, steps, tolerance)


def default_tolerance(config: TrainConfig) -> float:
    """Returns how far apart the weights of a right run may be."""
    narrow = config.precision != "float32" or config.reduce_dtype != "float32"
    return TOLERANCE_16_BITS if narrow else TOLERANCE


def _peer_lost(reason: str) -> NoReturn:
    print(f"castell: error: {reason}", file=sys.stderr, flush=True)
    faults.leave_peers(reason, lambda reason: None)


def _verify(plan: Plan, joined: Joined, steps: int, tolerance: float) -> None:
    replicas = joined.strategy.num_replicas_in_sync
    if replicas == 1:
        raise UsageError("verify_scaling: this run has one replica, there is nothing to compare")
    agree = make_agree(joined.strategy, plan.spec.world_size)
    local = local_replicas(plan.spec, replicas)

    def train(strategy: tf.distribute.Strategy, local: range) -> Trained:
        # All workers pass the same steps of both, so that what one learns (it is told to stop, a
        # shard is damaged) the others are told in time.
        return _train(plan, strategy, local, steps, agree, lambda: joined.stop.requested)

    # On every worker, not on the chief alone: the others would wait for it longer than a collective
    # lasts.
    alone = train(tf.distribute.OneDeviceStrategy(f"/{plan.choice.device}:0"), range(1))
    together = train(joined.strategy, local)
    agree([0])  # who leaves first takes the others' connections along
    if plan.spec.is_chief:
        try:
            _tell(plan, steps, replicas, (alone, together), tolerance)
        except ScalesWrongly:
            # The others have done their part: to them this is an agreed end, and no loss.
            joined.line.say_goodbye(EXIT_DONE, "the replicas were compared")
            raise


def _train(
    plan: Plan,
    strategy: tf.distribute.Strategy,
    local: range,
    steps: int,
    agree: Callable[[Sequence[int]], list[int]],
    stop_requested: Callable[[], bool],
) -> Trained:
    """Trains `steps` steps from the first weights on; a collective under a strategy of workers."""
    trained = build(plan.config, plan.dataset, strategy)
    silenced = seeds.silence(trained.task.models())
    replicas = strategy.num_replicas_in_sync
    columns = None if trained.task.feeds_itself else trained.task.columns(plan.dataset)
    rows = plan.config.global_batch // replicas
    in_a_call = min(plan.config.steps_per_call, steps, most_steps(trained.task, columns, rows))
    config = plan.config.model_copy(
        update={"steps": steps, "steps_per_call": in_a_call, "log_every": steps, "eval_every": None}
    )
    feeds = start_feeds(
        plan.config, plan.dataset, trained.task, columns,
        replicas=replicas, local=local, start=0, last=steps, steps=in_a_call,
    )  # fmt: skip
    written: list[Metrics] = []
    hooks = Hooks(
        save=lambda step: None,
        finish=lambda: None,
        write=lambda step, split, figures: written.append(figures),
        beat=lambda step: None,
        stop_requested=stop_requested,
        agree=agree,
        trouble=lambda batches: diagnose.explain(trained.task, strategy, batches),
    )
    try:
        Loop(trained.step(config), strategy, feeds, config, hooks).run(0)
    except Stopped:
        raise Stopped("told to stop: nothing was compared") from None
    trained.settle()
    weights = [
        (f"{attribute}/{variable.path}", np.asarray(tf.convert_to_tensor(variable), np.float64))
        for attribute, model in sorted(trained.task.models().items())
        for variable in model.weights
    ]
    return Trained(written[-1]["loss"], weights, silenced)


def compare(alone: Trained, together: Trained) -> Difference:
    """Returns how far two trainings are apart."""
    # By place: Keras counts on in the names of the second model that a process makes.
    weight, name = max(
        (_largest(one, all_of_them), name)
        for (name, one), (_, all_of_them) in zip(alone.weights, together.weights, strict=True)
    )
    loss = abs(alone.loss - together.loss) / max(1.0, abs(alone.loss))
    return Difference(loss, weight, name)


def _largest(a: Any, b: Any) -> float:
    largest = float(np.abs(a - b).max(initial=0.0))
    return largest if np.isfinite(largest) else float("inf")


def _tell(
    plan: Plan, steps: int, replicas: int, both: tuple[Trained, Trained], tolerance: float
) -> None:
    alone, together = both
    found = compare(alone, together)
    print(
        f"{steps} steps of {plan.config.global_batch} rows, the same ones, on 1 replica and on "
        f"{replicas} ({plan.choice.name}):\n"
        f"  mean loss: {alone.loss:.8g} and {together.loss:.8g}\n"
        f"  largest difference of a weight: {found.weight:.2g}, in {found.name} "
        f"(tolerance {tolerance:g})"
    )
    if alone.silenced:
        print(
            f"  without drawing at random: {', '.join(alone.silenced)} (replicas draw different "
            "numbers by design)"
        )
    sys.stdout.flush()
    if found.exceeds(tolerance):
        raise ScalesWrongly(
            f"{replicas} replicas do not learn what one does: after {steps} steps {found.name} is "
            f"{found.weight:.2g} off, the loss {found.loss:.2g} (tolerance {tolerance:g}): look "
            "for a loss that depends on other rows of its replica (a mean, a normalisation, "
            "BatchNormalization that is not synchronized) or draws at random"
        )
    print(f"ok: {replicas} replicas learn what one does", flush=True)
