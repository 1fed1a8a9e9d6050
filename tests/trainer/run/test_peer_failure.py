"""What TensorFlow raises when one of two workers goes away in an all-reduce, pinned.

If an upgrade changes the error, these tests say so before a cluster does.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.workers import processes, tf_configs
from trainer.cluster.resolve import resolve
from trainer.cluster.strategy import build, choose
from trainer.run import faults

HEARTBEAT_SECONDS = 2.0


def reduce_for_ever(faulty: bool) -> None:
    """Sums over both workers until that fails, and says why; a faulty one fails by itself."""
    import tensorflow as tf

    spec = resolve(os.environ)
    strategy = build(
        choose(spec),
        spec,
        heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
        collective_timeout_seconds=30,
    )
    divisor = tf.Variable(1.0)

    def reduce() -> tf.Tensor:
        value = tf.debugging.check_numerics(tf.ones([1000]) / divisor, "own fault")
        return tf.distribute.get_replica_context().all_reduce("SUM", value)

    @tf.function
    def steps() -> None:
        for _ in tf.range(20):
            strategy.run(reduce)

    steps()
    print("meeting", flush=True)
    try:
        while True:
            steps()
            if faulty:
                divisor.assign(0.0)
    except tf.errors.OpError as error:
        reason = faults.peer_failure(error)
        print(f"reason: {reason}", flush=True)
        faults.leave(1 if reason is None else 138)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
@pytest.mark.parametrize("victim", [0, 1])
def test_a_worker_that_goes_silent_is_a_lost_peer(
    tmp_path: Path, victim: int, number: signal.Signals
) -> None:
    with processes() as start:
        workers = [
            start(reduce_for_ever, False, env=env, log=tmp_path / f"{rank}.log")
            for rank, env in enumerate(tf_configs(2))
        ]
        # The steps are collective: when one has done some, both have.
        workers[0].wait_for(lambda: "meeting" in workers[0].output)
        workers[victim].send(number)
        began = time.monotonic()
        output = workers[1 - victim].expect(138, timeout=30)
        assert "was lost: " in output
        assert time.monotonic() - began < HEARTBEAT_SECONDS + 5, output


def test_a_workers_own_error_is_its_own_and_a_lost_peer_for_the_other(tmp_path: Path) -> None:
    with processes() as start:
        workers = [
            start(reduce_for_ever, rank == 1, env=env, log=tmp_path / f"{rank}.log")
            for rank, env in enumerate(tf_configs(2))
        ]
        assert "reason: None" in workers[1].expect(1)
        assert "was lost: " in workers[0].expect(138)
