"""From a plan to a strategy that stands: workers meet, watch each other, and TensorFlow connects.

No TensorFlow op may run and no user code be imported before ("Collective ops must be configured at
program startup").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

import tensorflow as tf

from trainer.cluster import strategy as strategies
from trainer.cluster.lifeline import Lifeline, lifeline
from trainer.cluster.preflight import meet
from trainer.cluster.spec import ClusterSpec
from trainer.errors import PeerLost
from trainer.plan import Plan
from trainer.run import faults


@dataclass(frozen=True)
class Joined:
    """strategy: built. stop: whether this process was told to stop. line: to the other workers."""

    strategy: tf.distribute.Strategy
    stop: faults.StopRequest
    line: Lifeline


@contextmanager
def together(
    plan: Plan, fingerprint: str, peer_lost: Callable[[str], NoReturn]
) -> Iterator[Joined]:
    """Meets the other workers and builds the strategy.

    Args:
      plan: what is run.
      fingerprint: what must be equal on all workers.
      peer_lost: ends the process when a worker is gone; called in a thread, told why.

    Raises:
      CastellError: workers are missing or differ, or the devices do not answer.
    """
    config, spec = plan.config, plan.spec
    with (
        faults.StopRequest() as stop,
        lifeline(
            spec,
            port=config.lifeline_port,
            heartbeat_timeout_seconds=config.heartbeat_timeout_seconds,
            end=peer_lost,
        ) as line,
    ):
        verdict = meet(
            spec,
            fingerprint=fingerprint,
            deadline_seconds=config.startup_deadline_seconds,
            stop=lambda: stop.requested,
            offer=line.offer,
        )
        line.connect(verdict)
        with faults.sigterm_waits():
            strategy = strategies.build(
                plan.choice,
                spec,
                heartbeat_timeout_seconds=config.heartbeat_timeout_seconds,
                collective_timeout_seconds=config.collective_timeout_seconds,
            )
            stop.rearm()
        yield Joined(strategy, stop, line)


@contextmanager
def losses_named(spec: ClusterSpec, line: Lifeline) -> Iterator[None]:
    """Turns what TensorFlow says when a peer is gone into PeerLost."""
    try:
        yield
    except Exception as error:
        own = "{type} {index}".format(**spec.tf_config()["task"])
        if spec.world_size > 1 and (reason := faults.peer_failure(error, own)):
            raise PeerLost("; ".join((*line.departures(), reason))) from error
        raise
