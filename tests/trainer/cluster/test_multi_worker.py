"""TensorFlow's part of a cluster, in processes forked from one that has imported it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.workers import processes
from trainer.cluster.devices import find_devices
from trainer.cluster.lifeline import lifeline
from trainer.cluster.local import free_ports, run_local
from trainer.cluster.preflight import meet
from trainer.cluster.spec import ClusterSpec
from trainer.cluster.strategy import Choice, build, choose
from trainer.errors import CastellError
from trainer.run import faults

PATIENCE = 60.0
MANY = 200


@pytest.fixture
def start() -> Iterator[Callable[..., Any]]:
    with processes() as starter:
        yield starter


def _strategy(spec: ClusterSpec, heartbeat: float = 10.0, collective: float = 60.0) -> Any:
    meet(spec, fingerprint="same", deadline_seconds=30)
    return build(
        choose(spec, "auto", find_devices()),
        spec,
        heartbeat_timeout_seconds=heartbeat,
        collective_timeout_seconds=collective,
    )


def _sum_of_ranks(strategy: Any, rank: int) -> Callable[[], float]:
    """Returns a function that adds up rank + 1 over all workers."""
    import tensorflow as tf

    def one() -> Any:
        context = tf.distribute.get_replica_context()
        return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.constant(rank + 1.0))

    total = tf.function(lambda: strategy.run(one))
    return lambda: float(total())


def _add(logs: str) -> int:
    def body(spec: ClusterSpec) -> int:
        import tensorflow as tf

        strategy = _strategy(spec)
        assert strategy.num_replicas_in_sync == 2
        assert _sum_of_ranks(strategy, spec.rank)() == 3.0
        cores = len(os.sched_getaffinity(0))
        assert tf.config.threading.get_intra_op_parallelism_threads() == max(1, cores // 2)
        print("added", flush=True)
        return 0

    return run_local(2, body, logs)


def test_two_local_workers_add_up_their_values(start: Callable[..., Any], tmp_path: Path) -> None:
    worker = start(_add, str(tmp_path / "logs"), log=tmp_path / "parent.log")
    assert "added" in worker.expect(0, PATIENCE)
    assert "added" in (tmp_path / "logs" / "worker-1.log").read_text()


def _lose(logs: str, number: int) -> int:
    """The second of two workers gets a signal; the chief says how long it took to notice."""

    def body(spec: ClusterSpec) -> int:
        total = _sum_of_ranks(_strategy(spec, heartbeat=1.0), spec.rank)
        total()
        if spec.rank == 1:
            threading.Timer(1.0, os.kill, (os.getpid(), number)).start()
        while True:
            began = time.monotonic()
            try:
                total()
            except Exception as error:
                print(f"{type(error).__name__} after {time.monotonic() - began:.1f} s", flush=True)
                return 138

    return run_local(2, body, logs, grace_seconds=8)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_lost_worker_is_noticed_within_its_heartbeat(
    start: Callable[..., Any], tmp_path: Path, number: int
) -> None:
    """Without a lifeline; TensorFlow is told a timeout three seconds longer than the one asked for.

    A kill is noticed at once only if the chief is receiving from that worker just then; a request
    sent after the death waits, like one to a stopped worker, for the heartbeat.
    """
    worker = start(_lose, str(tmp_path / "logs"), number, log=tmp_path / "parent.log")
    output = worker.expect(138, PATIENCE)
    noticed = output.split(" after ")[1].split(" s")[0]
    assert float(noticed) < 7, output


def _hang(logs: str) -> int:
    """One worker stays away from the all-reduce, though it lives."""

    def body(spec: ClusterSpec) -> int:
        total = _sum_of_ranks(_strategy(spec), spec.rank)
        total()
        if spec.rank == 1:
            time.sleep(20)
            return 0
        with faults.Watchdog(3.0, lambda reason: None):
            total()
        return 0

    return run_local(2, body, logs, grace_seconds=1)


def test_an_all_reduce_that_is_never_over_ends_with_138(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    output = start(_hang, str(tmp_path / "logs"), log=tmp_path / "log").expect(138, PATIENCE)
    assert "no progress for 3 s" in output


def _add_often(logs: str) -> int:
    def body(spec: ClusterSpec) -> int:
        total = _sum_of_ranks(_strategy(spec), spec.rank)
        total()
        before = len(os.listdir("/proc/self/task"))
        for _ in range(MANY):
            total()
        print(f"{len(os.listdir('/proc/self/task')) - before} more threads", flush=True)
        return 0

    return run_local(2, body, logs, grace_seconds=1)


def test_all_reduces_leave_no_threads_behind(start: Callable[..., Any], tmp_path: Path) -> None:
    """With TensorFlow's own timeout each leaves two, for as long as that is."""
    output = start(_add_often, str(tmp_path / "logs"), log=tmp_path / "log").expect(0, PATIENCE)
    assert int(output.split(" more threads")[0].split()[-1]) < MANY / 4


def _die_while_servers_connect(logs: str) -> int:
    """One worker dies before its TensorFlow server is up; the chief waits for it, lock in hand."""

    def end(reason: str) -> NoReturn:
        raise AssertionError("no thread of Python's can run")

    def body(spec: ClusterSpec) -> int:
        with lifeline(spec, port=0, heartbeat_timeout_seconds=3, end=end) as line:
            line.connect(meet(spec, fingerprint="same", deadline_seconds=30, offer=line.offer))
            if spec.rank == 1:
                time.sleep(2)
                os.kill(os.getpid(), signal.SIGKILL)
            build(choose(spec), spec, heartbeat_timeout_seconds=3, collective_timeout_seconds=60)
        return 0

    return run_local(2, body, logs, grace_seconds=20)


def test_a_worker_that_dies_while_the_servers_connect_ends_the_chief_at_once(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    worker = start(_die_while_servers_connect, str(logs), log=tmp_path / "log")
    output = worker.expect(138, PATIENCE)
    assert "castell: error: lost rank 1 (127.0.0.1:" in output
    # Neither the deadline of the build ended it, nor its parent.
    assert "did not find each other" not in output
    assert "worker 0 was killed" not in output


def _stop_while_building(logs: str) -> int:
    """TensorFlow's handler is in place by the end of the build: it would swallow the signal."""

    def body(spec: ClusterSpec) -> int:
        with faults.StopRequest() as stop:
            with faults.sigterm_waits():
                _strategy(spec)
                os.kill(os.getpid(), signal.SIGTERM)
                stop.rearm()
            print(f"heard: {stop.requested}", flush=True)
        faults.leave(0)

    return run_local(2, body, logs)


def test_a_sigterm_while_the_strategy_is_built_is_heard(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    output = start(_stop_while_building, str(logs), log=tmp_path / "log").expect(0, PATIENCE)
    assert "heard: True" in output
    assert "heard: True" in (logs / "worker-1.log").read_text()


def _wait_for_nobody(rank: int, ports: list[int]) -> int:
    workers = tuple(f"127.0.0.1:{port}" for port in ports)
    spec = ClusterSpec("worker" if rank else "chief", rank, workers, "test")
    build(choose(spec), spec, heartbeat_timeout_seconds=3, collective_timeout_seconds=3)
    return 0


@pytest.mark.parametrize("rank", [0, 1])
def test_a_peer_that_dies_after_the_preflight_is_not_waited_for_for_ever(
    start: Callable[..., Any], tmp_path: Path, rank: int
) -> None:
    worker = start(_wait_for_nobody, rank, free_ports(2), log=tmp_path / "log")
    assert "did not find each other" in worker.expect(138, 20)


def _local_strategies() -> int:
    import tensorflow as tf

    choice = choose(ClusterSpec(), "auto", find_devices(), cpu_replicas=2)
    os.environ["TF_CONFIG"] = "of another cluster"
    strategy = build(
        choice, ClusterSpec(), heartbeat_timeout_seconds=3, collective_timeout_seconds=3
    )
    assert strategy.num_replicas_in_sync == choice.replicas == 2
    assert strategy.reduce("SUM", strategy.run(lambda: tf.constant(2.0)), axis=None) == 4.0
    assert "TF_CONFIG" not in os.environ
    return 0


def test_one_cpu_plays_two_replicas(start: Callable[..., Any], tmp_path: Path) -> None:
    start(_local_strategies, log=tmp_path / "log").expect(0, PATIENCE)


def _tpu(hosts: int) -> int:
    import tensorflow as tf

    class Resolver(tf.distribute.cluster_resolver.TPUClusterResolver):
        """A local TPU, said to span some hosts."""

        def cluster_spec(self) -> Any:
            names = [f"10.0.0.{host}:8470" for host in range(hosts)]
            return tf.train.ClusterSpec({"worker": names} if hosts > 1 else {})

    try:
        build(
            Choice("tpu", "asked for", 0, 0, "TPU"),
            ClusterSpec(),
            heartbeat_timeout_seconds=3,
            collective_timeout_seconds=3,
            tpu_resolver=Resolver(tpu="local"),
        )
    except CastellError as error:
        print(f"castell: error: {error}")
        return error.exit_code
    return 0


@pytest.mark.parametrize(("hosts", "words"), [(1, "no TPU answers"), (2, "spans 2 hosts")])
def test_a_tpu_that_is_not_there_or_spans_hosts_is_one_line(
    start: Callable[..., Any], tmp_path: Path, hosts: int, words: str
) -> None:
    output = start(_tpu, hosts, log=tmp_path / "log").expect(2, PATIENCE)
    assert words in next(line for line in output.splitlines() if "castell: error:" in line)
    assert "Traceback" not in output
