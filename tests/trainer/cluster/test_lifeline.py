"""Real processes with lifelines: who is lost, who has only left, and how soon the others know."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.cluster.meetings import cluster, until
from trainer.cluster.lifeline import lifeline
from trainer.cluster.messages import Verdict
from trainer.cluster.preflight import meet
from trainer.cluster.spec import ClusterSpec
from trainer.errors import CastellError, Diverged, Stopped, UsageError
from trainer.run import faults

HEARTBEAT_SECONDS = 1.0
_context = multiprocessing.get_context("fork")

Body = Callable[[ClusterSpec], None]


def idle(spec: ClusterSpec) -> None:
    time.sleep(60)


def hold_the_lock(spec: ClusterSpec) -> None:
    """As TensorFlow does while its servers connect: no thread and no handler of Python's runs."""
    ctypes.PyDLL(None).sleep(60)


def _end(reason: str) -> Any:
    print(f"castell: error: {reason}", flush=True)
    faults.leave_peers(reason, lambda text: None)


def _work(spec: ClusterSpec, body: Body, log: Path, port: int, found: Verdict | None) -> None:
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.stdout = sys.stderr = os.fdopen(1, "w", buffering=1)
    code = 0
    try:
        with lifeline(
            spec, port=port, heartbeat_timeout_seconds=HEARTBEAT_SECONDS, end=_end
        ) as line:
            verdict = meet(spec, fingerprint="f", deadline_seconds=20, offer=line.offer)
            line.connect(found or verdict)
            print("met", flush=True)
            body(spec)
    except CastellError as error:
        print(f"castell: error: {error}", flush=True)
        code = error.exit_code
    except RuntimeError:
        code = 1
    faults.leave(code)


class Member:
    """A process that runs a body inside its lifeline."""

    def __init__(self, process: Any, log: Path) -> None:
        self.process = process
        self.log = log

    @property
    def output(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def expect(self, code: int, within: float) -> str:
        self.process.join(within)
        assert self.process.exitcode == code, self.output
        return self.output

    def send(self, number: int) -> None:
        os.kill(self.process.pid, number)

    @property
    def watch(self) -> int:
        """The process id of its watch, its only child."""
        children = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        return int(Path(children).read_text())


Start = Callable[..., list[Member]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts one process a body, and waits until all have met and hold their lines."""
    with members(tmp_path) as starter:
        yield starter


@contextmanager
def members(logs: Path) -> Iterator[Start]:
    started: list[Member] = []

    def starter(
        *bodies: Body, port: int = 0, found: Verdict | None = None, met: bool = True
    ) -> list[Member]:
        for spec, body in zip(cluster(len(bodies)), bodies, strict=True):
            log = logs / f"{spec.rank}.log"
            process = _context.Process(target=_work, args=(spec, body, log, port, found))
            process.start()
            started.append(Member(process, log))
        if met:
            until(lambda: all("met" in member.output for member in started))
        return started

    try:
        yield starter
    finally:
        for member in started:
            member.process.kill()
            member.process.join(10)


@pytest.mark.parametrize("body", [idle, hold_the_lock])
@pytest.mark.parametrize("victim", [0, 2])
def test_a_killed_worker_is_named_to_all_within_three_seconds(
    start: Start, victim: int, body: Body
) -> None:
    workers = start(body, body, body)
    workers[victim].send(signal.SIGKILL)
    ends = time.monotonic() + 3
    for rank in {0, 1, 2} - {victim}:
        output = workers[rank].expect(138, ends - time.monotonic())
        (line,) = [line for line in output.splitlines() if "castell:" in line]
        name = f"rank {victim}" if victim else "chief"
        assert line.startswith(f"castell: error: lost {name} (127.0.0.1:"), line
        assert line.endswith("): connection closed")


@pytest.mark.parametrize("victim", [0, 1])
def test_a_stopped_worker_is_lost_and_knows_it_when_it_wakes(start: Start, victim: int) -> None:
    workers = start(idle, idle, hold_the_lock)
    workers[victim].send(signal.SIGSTOP)
    ends = time.monotonic() + HEARTBEAT_SECONDS + 5
    for rank in {0, 1, 2} - {victim}:
        output = workers[rank].expect(138, ends - time.monotonic())
        assert "): silent for 1 s" in output
    workers[victim].send(signal.SIGCONT)
    workers[victim].expect(138, 3)


def test_a_worker_that_holds_pythons_lock_for_long_is_not_lost(start: Start) -> None:
    def holds_it(spec: ClusterSpec) -> None:
        ctypes.PyDLL(None).sleep(4 if spec.rank else 0)
        time.sleep(0 if spec.rank else 4.5)

    for worker in start(holds_it, holds_it):
        worker.expect(0, 10)


def test_short_stops_and_a_frozen_machine_lose_nobody(start: Start) -> None:
    workers = start(idle, idle)
    for _ in range(3):
        workers[1].send(signal.SIGSTOP)
        time.sleep(0.7)
        workers[1].send(signal.SIGCONT)
        time.sleep(0.3)
    everybody = [worker.process.pid for worker in workers] + [worker.watch for worker in workers]
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in everybody:
            os.kill(pid, number)
        time.sleep(3 * HEARTBEAT_SECONDS)
    assert all(worker.process.is_alive() for worker in workers), [w.output for w in workers]


def _raising(error: BaseException | None) -> Body:
    def body(spec: ClusterSpec) -> None:
        if error:
            raise error

    return body


@pytest.mark.parametrize(
    ("victim", "error"),
    [(0, None), (1, None), (0, Stopped("told")), (1, Diverged("nan")), (1, UsageError("no"))],
)
def test_who_leaves_by_agreement_is_not_lost(
    start: Start, victim: int, error: BaseException | None
) -> None:
    def stays(spec: ClusterSpec) -> None:
        time.sleep(1.2)

    bodies: list[Body] = [stays, stays, stays]
    bodies[victim] = _raising(error)
    workers = start(*bodies, met=False)
    for rank, worker in enumerate(workers):
        own = error.exit_code if isinstance(error, CastellError) else 0
        worker.expect(own if rank == victim else 0, 10)


def test_nobody_leaves_before_all_say_goodbye(start: Start) -> None:
    def ends(spec: ClusterSpec) -> None:
        time.sleep(spec.rank)

    chief, *others = start(ends, ends, ends, met=False)
    until(lambda: all("met" in worker.output for worker in (chief, *others)))
    time.sleep(1.5)
    assert chief.process.is_alive()
    for worker in (chief, *others):
        worker.expect(0, 2)


@pytest.mark.parametrize("victim", [0, 1])
def test_who_fails_is_lost(start: Start, victim: int) -> None:
    def fails(spec: ClusterSpec) -> None:
        time.sleep(1)
        raise RuntimeError

    bodies: list[Body] = [idle, idle, idle]
    bodies[victim] = fails
    workers = start(*bodies, met=False)
    workers[victim].expect(1, 10)
    for rank in {0, 1, 2} - {victim}:
        assert "): it failed: see its log" in workers[rank].expect(138, 3)


def test_a_stranger_on_the_port_is_ignored(start: Start, tmp_path: Path) -> None:
    (port,) = [address.split(":")[1] for address in cluster(1)[0].workers]
    workers = start(idle, idle, port=int(port))
    hellos = (b"", b"GET / HTTP/1.1\r\n\r\n", b'{"castell": "lifeline", "rank": 1, "secret": ""}\n')
    for hello in hellos:
        with socket.create_connection(("127.0.0.1", int(port))) as stranger:
            stranger.sendall(hello)
    time.sleep(1)
    assert all(worker.process.is_alive() for worker in workers)
    workers[1].send(signal.SIGKILL)
    workers[0].expect(138, 3)


def test_a_port_that_is_taken_is_one_line_for_all(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.cluster.ports.PORT_PATIENCE_SECONDS", 0.5)
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
        for worker in start(idle, idle, port=port, met=False):
            output = worker.expect(2, 15)
            assert output.startswith(f"castell: error: lifeline_port ({port}): another process")
            assert output.count("\n") == 1


def test_without_a_lifeline_one_line_says_so_and_training_goes_on(start: Start) -> None:
    nobody_listens = Verdict(lifeline_port=9, lifeline_secret="x")
    for worker in start(_raising(None), _raising(None), found=nobody_listens, met=False):
        output = worker.expect(0, 20)
        assert "castell: warning: no lifeline to " in output
        assert output.count("\n") == 2


def test_one_process_has_no_watch() -> None:
    with lifeline(ClusterSpec(), port=0, heartbeat_timeout_seconds=1, end=_end) as line:
        line.connect(Verdict())
        children = f"/proc/{os.getpid()}/task/{os.getpid()}/children"
        pids = Path(children).read_text().split()
        assert not any(b"watch.py" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids)
