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
from trainer.cluster.local import free_ports, run_local
from trainer.cluster.spec import ClusterSpec
from trainer.errors import UsageError

Body = Callable[[ClusterSpec], int]


def _leave(codes: list[int]) -> Body:
    return lambda spec: codes[spec.rank]


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
    tmp_path: Path, codes: list[int], expected: int
) -> None:
    assert run_local(len(codes), _leave(codes), tmp_path) == expected


def test_each_worker_knows_its_place_and_only_the_chief_has_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLUSTER_SPEC", "of the parent")

    def body(spec: ClusterSpec) -> int:
        config = json.loads(os.environ["TF_CONFIG"])
        assert config == spec.tf_config()
        assert "CLUSTER_SPEC" not in os.environ
        print(f"rank {spec.rank} of {spec.world_size}")
        return 0

    assert run_local(2, body, tmp_path / "logs") == 0
    assert capfd.readouterr().out == "rank 0 of 2\n"
    assert "rank 1 of 2" in (tmp_path / "logs" / "worker-1.log").read_text()
    assert [file.name for file in (tmp_path / "logs").iterdir()] == ["worker-1.log"]


def test_a_fault_keeps_its_traceback_and_a_mistake_is_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def fault(spec: ClusterSpec) -> int:
        return 0 if spec.is_chief else 1 // 0

    assert run_local(2, fault, tmp_path) == 1
    shown = capfd.readouterr().err
    assert "ZeroDivisionError" in shown
    assert str(tmp_path / "worker-1.log") in shown

    def mistake(spec: ClusterSpec) -> int:
        raise UsageError("data (x): no such directory")

    assert run_local(3, mistake, tmp_path) == 2
    assert capfd.readouterr().err == "castell: error: data (x): no such directory\n"


def test_one_dies_and_the_others_do_not_linger(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def body(spec: ClusterSpec) -> int:
        if spec.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if spec.rank == 2:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(60)
        return 0

    began = time.monotonic()
    assert run_local(3, body, tmp_path, grace_seconds=0.5) == 138
    assert time.monotonic() - began < 8
    assert "worker 1 was killed by SIGKILL" in capfd.readouterr().err


_PROGRAM = """
import os, signal, sys, time
from trainer.cluster.local import run_local

def body(spec):
    told = []
    signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
    open(f"{sys.argv[1]}/{spec.rank}.pid", "w").write(str(os.getpid()))
    while not told:
        time.sleep(0.02)
    time.sleep(0.5)
    print(f"told {len(told)}", flush=True)
    return 143

sys.exit(run_local(2, body, sys.argv[1]))
"""


def _program(directory: Path) -> tuple[subprocess.Popen[str], list[int]]:
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(directory)],
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
