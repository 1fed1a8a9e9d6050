"""Signals, stalls and the way out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.workers import processes
from trainer.run.faults import StopRequest, Watchdog, peer_failure


def run_script(script: str) -> tuple[subprocess.CompletedProcess[str], float]:
    """Runs a script in a process of its own; returns it and its seconds."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=60
    )
    return done, time.monotonic() - began


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_only_sets_the_flag(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with StopRequest() as stop:
        assert not stop.requested
        os.kill(os.getpid(), number)
        assert stop.requested
        assert stop.reason == f"told to stop ({number.name})"
    assert signal.getsignal(number) is before


def test_the_second_interrupt_interrupts() -> None:
    def twice() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with StopRequest() as stop, pytest.raises(KeyboardInterrupt):
        twice()
    assert stop.requested


def test_a_second_sigterm_is_still_only_a_flag() -> None:
    with StopRequest() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
    assert stop.requested


STALL = """
import sys, time
from trainer.run.faults import Watchdog
def a_loop_that_hangs():
    time.sleep(60)
with Watchdog(0.5, lambda reason: print("farewell:", reason)) as watchdog:
    a_loop_that_hangs()
"""


def test_a_stall_leaves_with_138_the_stacks_and_a_farewell() -> None:
    done, seconds = run_script(STALL)
    assert done.returncode == 138
    assert "no progress for 0.5 s" in done.stderr
    assert "a_loop_that_hangs" in done.stderr
    assert done.stdout == "farewell: no progress for 0.5 s\n"
    assert seconds < 5


def test_a_farewell_that_hangs_or_fails_does_not_keep_the_process() -> None:
    hangs = STALL.replace('lambda reason: print("farewell:", reason)', "lambda _: time.sleep(60)")
    done, seconds = run_script(hangs)
    assert (done.returncode, seconds < 15) == (138, True)
    fails = STALL.replace('print("farewell:", reason)', "1 / 0")
    assert run_script(fails)[0].returncode == 138


def test_beats_keep_the_process_alive() -> None:
    stalls: list[str] = []
    with Watchdog(0.5, stalls.append) as watchdog:
        for _ in range(20):
            time.sleep(0.05)
            watchdog.beat()
    assert stalls == []


def test_being_stopped_oneself_is_no_stall() -> None:
    script = STALL.replace("time.sleep(60)", "print('begun', flush=True); time.sleep(0.7)").replace(
        "Watchdog(0.5", "Watchdog(1.5"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGSTOP)
        time.sleep(2.5)
        process.send_signal(signal.SIGCONT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_leaving_flushes_and_asks_nobody() -> None:
    script = """
import atexit, logging, sys
from logging.handlers import MemoryHandler
from trainer.run.faults import leave
atexit.register(print, "never")
logging.getLogger().addHandler(
    MemoryHandler(99, logging.CRITICAL, logging.StreamHandler(sys.stderr)))
logging.getLogger().warning("logged")
sys.stdout.write("printed")
leave(143)
"""
    done, _ = run_script(script)
    assert (done.returncode, done.stdout) == (143, "printed")
    assert "logged" in done.stderr


def tell_failures_apart() -> None:
    from tensorflow import errors

    def reason(kind: Any, text: str) -> str | None:
        return peer_failure(kind(None, None, text))

    assert peer_failure(ValueError("Connection reset by peer")) is None
    noticed = errors.UnavailableError(
        None, None, "Collective ops is aborted by: Error reported from /job:worker/task:0: reset"
    )
    assert str(peer_failure(noticed)).startswith("worker 0 was lost: ")
    assert str(peer_failure(noticed, "worker 0")).startswith("another worker was lost: ")
    assert reason(errors.InvalidArgumentError, "loss : Tensor had Inf values") is None
    assert reason(errors.ResourceExhaustedError, "OOM when allocating tensor") is None
    assert reason(errors.InternalError, "cuDNN launch failure") is None
    assert reason(errors.FailedPreconditionError, "variable is uninitialized") is None
    assert reason(errors.InternalError, "ring: Connection reset by peer") == (
        "another worker was lost: ring: Connection reset by peer"
    )
    assert reason(errors.FailedPreconditionError, "CoordinationService agent is in ERROR") == (
        "another worker was lost: CoordinationService agent is in ERROR"
    )
    assert reason(errors.CancelledError, "") == "another worker was lost: CancelledError"
    text = """Graph execution error:

Detected at node x defined at (most recent call last):
  File "a.py", line 1, in <module>
Collective ops is aborted by: Error reported from /job:chief/task:0: no
The error could be from a previous operation. Restart your program to reset.
\t [[{{node x}}]]"""
    assert reason(errors.InvalidArgumentError, text) == (
        "chief 0 was lost: Error reported from /job:chief/task:0: no"
    )


def test_errors_of_our_own_are_no_peer_failure(tmp_path: Path) -> None:
    with processes() as start:
        start(tell_failures_apart, log=tmp_path / "log").expect(0)


def test_what_it_follows_keeps_the_process_alive_while_it_changes() -> None:
    steps = "itertools.chain(range(8), itertools.repeat(8))"
    script = STALL.replace("import sys, time", "import itertools, sys, time").replace(
        "    a_loop", f"    watchdog.follow({steps}.__next__)\n    a_loop"
    )
    done, seconds = run_script(script.replace("Watchdog(0.5", "Watchdog(1.0"))
    assert done.returncode == 138
    # Eight changes, a tenth of a second apart, and then the second.
    assert seconds > 1.6
