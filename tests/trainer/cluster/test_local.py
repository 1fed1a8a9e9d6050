import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.trainer.cluster.meetings import until
from tests.workers import Worker
from trainer.cluster.local import free_ports, run_local
from trainer.cluster.spec import ClusterSpec
from trainer.errors import UsageError

Start = Callable[..., Worker]

# The bodies run in workers forked from a process of their own: pytest's has run TensorFlow ops.


def _leave(codes: list[int], logs: str) -> int:
    return run_local(len(codes), lambda spec: codes[spec.rank], logs)


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([0, 0, 0], 0),
        ([143, 143, 0], 143),
        ([138, 143, 0], 138),
        ([138, 3, 138], 3),
        ([138, 1, 138], 1),
        ([138, 138, 2], 2),
        ([138, 138, 77], 1),
    ],
)
def test_the_most_telling_exit_code_is_returned(
    tmp_path: Path, start: Start, codes: list[int], expected: int
) -> None:
    start(_leave, codes, str(tmp_path), log=tmp_path / "log").expect(expected, timeout=30)


def _fate(codes: list[int], logs: str) -> int:
    """Ends of the workers: an exit code, or minus a signal."""

    def body(spec: ClusterSpec) -> int:
        if (code := codes[spec.rank]) < 0:
            os.kill(os.getpid(), -code)
        return code

    def told(fate: str) -> None:
        print(f"in short: {fate}", file=sys.stderr)

    return run_local(len(codes), body, logs, on_failure=told)


@pytest.mark.parametrize(
    ("codes", "fate"),
    [
        ([138, 1, 138], "worker 1 ended with 1"),
        ([143, 138, 2], "worker 2 ended with 2"),
        ([138, -11], "worker 1 was killed by SIGSEGV"),
        ([138, -9], "worker 1 was killed by SIGKILL"),
        ([138, 1, -9], "worker 1 ended with 1"),
        ([138, 138], "worker 0 ended with 138"),
    ],
)
def test_the_fate_that_is_told_is_that_of_the_code(
    tmp_path: Path, start: Start, codes: list[int], fate: str
) -> None:
    worker = start(_fate, codes, str(tmp_path), log=tmp_path / "log")
    worker.wait(timeout=30)
    assert f"in short: {fate}\n" in worker.output


def test_logs_that_cannot_be_written_are_a_mistake_before_anybody_starts(tmp_path: Path) -> None:
    (tmp_path / "worker-2.log").mkdir()  # in the way, as a read-only disk is
    with pytest.raises(UsageError, match=r"worker-2\.log cannot be written \(Is a directory\)"):
        run_local(3, lambda spec: 1 // 0, tmp_path)
    with pytest.raises(UsageError, match=r"/proc/nowhere cannot be written"):
        run_local(2, lambda spec: 1 // 0, "/proc/nowhere")


def _look_around(logs: str) -> int:
    def body(spec: ClusterSpec) -> int:
        config = json.loads(os.environ["TF_CONFIG"])
        assert config == spec.tf_config()
        assert "CLUSTER_SPEC" not in os.environ
        print(f"rank {spec.rank} of {spec.world_size}")
        return 0

    return run_local(2, body, logs)


def test_each_worker_knows_its_place_and_only_the_chief_has_the_terminal(
    tmp_path: Path, start: Start
) -> None:
    logs = tmp_path / "logs"
    env = {"CLUSTER_SPEC": "of the parent"}
    shown = start(_look_around, str(logs), log=tmp_path / "log", env=env).expect(0, timeout=30)
    assert shown == "rank 0 of 2\n"
    assert "rank 1 of 2" in (logs / "worker-1.log").read_text()
    assert [file.name for file in logs.iterdir()] == ["worker-1.log"]


def _fault(logs: str) -> int:
    return run_local(2, lambda spec: 0 if spec.is_chief else 1 // 0, logs)


def _mistake(logs: str) -> int:
    def body(spec: ClusterSpec) -> int:
        raise UsageError("data (x): no such directory")

    return run_local(3, body, logs)


def test_a_fault_keeps_its_traceback_and_a_mistake_is_one_line(
    tmp_path: Path, start: Start
) -> None:
    shown = start(_fault, str(tmp_path), log=tmp_path / "fault").expect(1, timeout=30)
    assert "ZeroDivisionError" in shown
    assert str(tmp_path / "worker-1.log") in shown
    shown = start(_mistake, str(tmp_path), log=tmp_path / "mistake").expect(2, timeout=30)
    assert shown == "castell: error: data (x): no such directory\n"


def _die(logs: str) -> int:
    def body(spec: ClusterSpec) -> int:
        if spec.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if spec.rank == 2:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            print("will not listen")
        time.sleep(60)
        return 0

    def told(fate: str) -> None:
        print(f"in short: {fate}", file=sys.stderr)

    return run_local(3, body, logs, grace_seconds=1.5, on_failure=told)


def test_one_dies_and_the_others_do_not_linger(tmp_path: Path, start: Start) -> None:
    shown = start(_die, str(tmp_path), log=tmp_path / "log").expect(138, timeout=30)
    assert shown == (
        "worker 1 was killed by SIGKILL\n"
        f"worker 2 had not left when told to and was killed; {tmp_path}/worker-2.log:\n"
        "  will not listen\n"
        "in short: worker 1 was killed by SIGKILL\n"
    )


def _die_before_they_meet(logs: str) -> int:
    def body(spec: ClusterSpec) -> int:
        if spec.is_chief:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)  # as in the rendezvous: no connection says that the chief is gone
        return 0

    return run_local(2, body, logs)


def test_who_waits_for_a_dead_one_is_told(tmp_path: Path, start: Start) -> None:
    began = time.monotonic()
    start(_die_before_they_meet, str(tmp_path), log=tmp_path / "log").expect(138, timeout=30)
    assert time.monotonic() - began < 10


def _fail_then_succeed(ends: list[list[int]], logs: str, restarts: int) -> int:
    """Each start takes the next ends: an exit code a worker, or minus a signal."""
    starts = Path(logs) / "starts"

    def body(spec: ClusterSpec) -> int:
        if spec.is_chief:
            with starts.open("a") as file:
                file.write(f"{','.join(spec.workers)}\n")
        until(lambda: starts.exists() and spec.workers[0] in starts.read_text())
        end = ends[len(starts.read_text().splitlines()) - 1][spec.rank]
        if end < 0:
            os.kill(os.getpid(), -end)
        return end

    return run_local(len(ends[0]), body, logs, max_restarts=restarts, grace_seconds=1)


@pytest.mark.parametrize(
    ("ends", "restarts", "expected", "words"),
    [
        ([[138, -9], [0, 0]], 3, 0, ["worker 1 was killed by SIGKILL; restart 1 of 3"]),
        ([[138, -11], [0, 0]], 3, 0, ["worker 1 was killed by SIGSEGV; restart 1 of 3"]),
        ([[143, 143], [0, 0]], 3, 0, ["worker 0 ended with 143; restart 1 of 3 in 0.5 s"]),
        ([[138, 138]] * 3, 2, 138, ["restart 1 of 2 in 0.5 s", "restart 2 of 2 in 1 s"]),
        ([[-11, 138]] * 2, 1, 1, ["restart 1 of 1"]),
        ([[138, 1]], 3, 1, []),
        ([[2, 138]], 3, 2, []),
        ([[3, -9]], 3, 3, []),
        ([[0, 0]], 3, 0, []),
    ],
)
def test_a_lost_cluster_is_started_again_and_a_mistake_is_not(
    tmp_path: Path,
    start: Start,
    ends: list[list[int]],
    restarts: int,
    expected: int,
    words: list[str],
) -> None:
    worker = start(_fail_then_succeed, ends, str(tmp_path), restarts, log=tmp_path / "log")
    shown = worker.expect(expected, timeout=30)
    said = [line for line in shown.splitlines() if "restart" in line]
    assert len(said) == len(words)
    assert all(word in line for word, line in zip(words, said, strict=True))
    ports = (tmp_path / "starts").read_text().split()
    assert len(set(ports)) == len(words) + 1, "each start has ports of its own"


def _stop_in_the_pause(logs: str) -> int:
    parent = os.getpid()

    def body(spec: ClusterSpec) -> int:
        if spec.is_chief:
            os.kill(parent, signal.SIGTERM)
        time.sleep(0.5)
        return 138

    return run_local(2, body, logs, max_restarts=3)


def test_who_is_told_to_stop_restarts_nothing(tmp_path: Path, start: Start) -> None:
    worker = start(_stop_in_the_pause, str(tmp_path), log=tmp_path / "log")
    assert "restart" not in worker.expect(143, timeout=30)


_PROGRAM = """
import os, signal, sys, time
from trainer.cluster.local import run_local

def body(spec):
    told = []
    signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
    open(f"{sys.argv[1]}/{spec.rank}.pid", "w").write(str(os.getpid()))
    while not told:
        time.sleep(0.02)
    time.sleep(float(sys.argv[2]))
    print(f"told {len(told)}", flush=True)
    return 143

sys.exit(run_local(2, body, sys.argv[1]))
"""


def _program(directory: Path, seconds: float = 0.5) -> tuple[subprocess.Popen[str], list[int]]:
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(directory), str(seconds)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    files = [directory / f"{rank}.pid" for rank in range(2)]
    until(lambda: all(file.exists() and file.read_text() for file in files))
    return process, [int(file.read_text()) for file in files]


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_passed_on_once_even_if_the_terminal_sends_it_to_all(
    tmp_path: Path, number: signal.Signals
) -> None:
    process, pids = _program(tmp_path)
    os.killpg(process.pid, number)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 143
    assert output == "told 1\n"
    assert (tmp_path / "worker-1.log").read_text() == "told 1\n"
    assert all(_gone(pid) for pid in pids)


def test_an_interrupt_that_comes_twice_at_once_counts_as_one(tmp_path: Path) -> None:
    process, _ = _program(tmp_path)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    output, _ = process.communicate(timeout=20)
    assert (process.returncode, output) == (143, "told 1\n")


def test_a_second_interrupt_kills(tmp_path: Path) -> None:
    process, pids = _program(tmp_path, seconds=60)
    process.send_signal(signal.SIGINT)
    time.sleep(1.2)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 138
    assert all(_gone(pid) for pid in pids)


def test_no_worker_outlives_a_parent_that_was_killed(tmp_path: Path) -> None:
    process, pids = _program(tmp_path)
    process.kill()
    process.wait()
    until(lambda: all(_gone(pid) for pid in pids))


def test_free_ports_are_free_and_no_outgoing_connection_takes_them() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert low <= 21000 or max(ports) < low


def _cannot_print(logs: str, ends: str) -> int:
    """The chief fails with nowhere to print it; the parent notes each process that passes it."""

    def body(spec: ClusterSpec) -> int:
        if spec.is_chief:
            sys.stderr = open("/dev/full", "w", buffering=1)  # noqa: SIM115
            sys.stdout = open("/dev/full", "w")  # noqa: SIM115
            print("more than can be flushed")
            raise RuntimeError("cannot be told")
        return 0

    try:
        return run_local(2, body, logs)
    finally:
        with open(ends, "a") as file:
            file.write(f"{os.getpid()}\n")


def test_a_worker_that_cannot_print_never_runs_its_parents_code(
    tmp_path: Path, start: Start
) -> None:
    ends = tmp_path / "ends"
    parent = start(_cannot_print, str(tmp_path / "logs"), str(ends), log=tmp_path / "log")
    parent.expect(1, timeout=30)
    assert ends.read_text().split() == [str(parent.pid)]
