"""Makes a fork of this process one worker of a local cluster.

A fork starts in 0.1 s where importing TensorFlow takes many; it is sound as long as no op has run
and no GPU was opened (see `devices`). Each worker gets its own process group, its TF_CONFIG, its
share of cores and GPUs, and a log file (the chief keeps the terminal).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trainer.cluster import devices
from trainer.cluster.resolve import without_cluster
from trainer.cluster.spec import ClusterSpec
from trainer.errors import EXIT_FAULT, EXIT_STOPPED, CastellError
from trainer.run.child import die_with_parent
from trainer.streams import tolerate

Body = Callable[[ClusterSpec], int]

_PASSED_ON = (signal.SIGTERM, signal.SIGINT)


@dataclass
class Worker:
    """One forked process.

    code: None while it runs. log_start: where this run begins in its log. killed_by: the signal
    that ended it, 0 if none did. sent: the last signal that its parent sent it, 0 if none.
    """

    rank: int
    pid: int
    log: Path | None
    log_start: int = 0
    code: int | None = None
    killed_by: int = 0
    sent: int = 0


def log_of(logs: Path, rank: int) -> Path:
    """Returns the file that a worker's output goes to."""
    return logs / f"worker-{rank}.log"


def start(spec: ClusterSpec, body: Body, logs: Path) -> Worker:
    """Forks a worker that runs `body` and leaves with its exit code; returns in the parent only.

    A CastellError of `body` is one line and its own code; any other exception its traceback and 1.
    """
    log = log_of(logs, spec.rank) if spec.rank else None
    log_start = log.stat().st_size if log and log.exists() else 0
    parent = os.getpid()
    # A signal that comes before the fork is settled would meet the parent's handler in it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return Worker(spec.rank, pid, log, log_start)
    code = EXIT_FAULT
    # Whatever fails in here, printing of a failure too, the fork must not go on in the code of its
    # parent, which would end the other workers.
    try:
        try:
            _settle(spec, parent, log)
            code = _run(spec, body)
        except BaseException:
            traceback.print_exc()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
    finally:
        # Not sys.exit: nothing of the parent's (its atexit hooks, its test runner) may run here.
        os._exit(code)
    raise AssertionError("unreachable")


def _run(spec: ClusterSpec, body: Body) -> int:
    try:
        return int(body(spec))
    except CastellError as error:
        print(f"castell: error: {error}", file=sys.stderr)
        return error.exit_code


def _settle(spec: ClusterSpec, parent: int, log: Path | None) -> None:
    """Makes the fork a worker: its own group, environment, output and share of the machine."""
    # A group of its own keeps the terminal's Ctrl-C to the parent, which passes it on once.
    os.setpgid(0, 0)
    for number in _PASSED_ON:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
    die_with_parent()
    if os.getppid() != parent:  # it ended before the line above
        os._exit(EXIT_STOPPED)
    if log:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(file, 1)
        os.dup2(file, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        # The parent's may be buffered, or write elsewhere (a notebook's, a captured one).
        sys.stdout = os.fdopen(1, "w", buffering=1, errors="backslashreplace")
        sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace")
    tolerate("stdout", "stderr")
    environment = without_cluster(os.environ)
    os.environ.clear()
    os.environ.update(environment, TF_CONFIG=json.dumps(spec.tf_config()))
    _share_machine(spec)


def _share_machine(spec: ClusterSpec) -> None:
    """Gives each worker its part of cores and GPUs.

    Every worker would otherwise start as many threads as the machine has cores, and claim the
    memory of every GPU. At least two inter-op threads, so that an op that waits for a peer does not
    hold the only one.
    """
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    share = max(1, cores // spec.world_size)
    if tensorflow := sys.modules.get("tensorflow"):
        tensorflow.config.threading.set_intra_op_parallelism_threads(share)
        tensorflow.config.threading.set_inter_op_parallelism_threads(max(2, share))
    if gpus := devices.gpu_names(os.environ):
        each = len(gpus) // spec.world_size
        mine = gpus[spec.rank * each : (spec.rank + 1) * each]
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(mine) or "-1"
