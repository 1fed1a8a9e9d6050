"""N workers on this machine: starts them, passes signals on, and starts them again if that helps.

Each listens on a free loopback port; how a fork becomes a worker stands in `fork`, how all of them
end in `crew`, and what a worker does is its `body`.
"""

from __future__ import annotations

import itertools
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from trainer.cluster.crew import Asked, Crew
from trainer.cluster.fork import Body, log_of, start
from trainer.cluster.spec import ClusterSpec, Role
from trainer.errors import EXIT_STOPPED, UsageError

# The first is nearly at once, since most losses are single; a machine in trouble needs longer.
_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 10.0
# One Ctrl-C may come twice: from the terminal, and from a wrapper that got it too.
_ECHO_SECONDS = 1.0


def run_local(
    workers: int,
    body: Body,
    log_directory: str | Path,
    *,
    grace_seconds: float = 10.0,
    max_restarts: int = 0,
    on_failure: Callable[[str], None] = lambda fate: None,
) -> int:
    """Runs `body` in `workers` forked processes and returns the most telling exit code.

    body: gets the process's ClusterSpec and returns its exit code; an exception that is not a
    CastellError is printed with its traceback and counts as 1. log_directory: where
    `worker-<rank>.log` of all but the chief go; made if missing, logs are appended to.
    grace_seconds: how long the others may take to leave once a worker has failed. After a second
    they are told to (SIGTERM: who still waits for the others to come has no connection whose loss
    would say so), in the end made to; a checkpoint that is being written is lost then, those before
    it are not. max_restarts: how often all of them are started again, as a platform would, after a
    lost peer (138), a stop that did not come from here (143) or a signal that killed one; each is
    printed with its reason. on_failure: told in words how the workers ended if they are not all
    done and nothing is started any more. SIGTERM and SIGINT are passed on once as SIGTERM; a second
    SIGINT kills if it comes more than a second later (a wrapper like `timeout` passes on what the
    terminal has sent as well). If this process is killed, so are the workers.

    Call it in the main thread, before any TensorFlow op.

    Raises:
      UsageError: the logs cannot be written; nobody has started.
    """
    logs = _log_directory(str(log_directory), workers)
    with _signals() as asked:
        for restart in itertools.count(1):
            crew = Crew(asked, grace_seconds)
            _run_once(crew, workers, body, logs)
            reason = crew.worth_a_restart()
            if asked.to_stop or reason is None or restart > max_restarts:
                if fate := crew.fate():
                    on_failure(fate)
                return crew.exit_code()
            pause = min(_PAUSE_SECONDS * 2 ** (restart - 1), _LONGEST_PAUSE_SECONDS)
            print(
                f"castell: {reason}; restart {restart} of {max_restarts} in {pause:g} s",
                file=sys.stderr,
                flush=True,
            )
            if _stopped_within(pause, asked):
                on_failure(reason)
                return EXIT_STOPPED
    raise AssertionError("unreachable")


def _run_once(crew: Crew, workers: int, body: Body, logs: Path) -> None:
    """Starts all workers on new ports (the old ones may linger) and waits until all have ended."""
    addresses = tuple(f"127.0.0.1:{port}" for port in free_ports(workers))
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        for rank in range(workers):
            role: Role = "worker" if rank else "chief"
            spec = ClusterSpec(role, rank, addresses, f"--workers {workers}")
            crew.add(start(spec, body, logs))
        crew.wait()
    finally:
        crew.kill()
    crew.report()


def _stopped_within(seconds: float, asked: Asked) -> bool:
    """Waits; returns whether the wish to stop came meanwhile."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends and not asked.to_stop:
        time.sleep(0.05)
    return asked.to_stop


def _log_directory(wanted: str, workers: int) -> Path:
    """Returns the directory with a log in it for each worker but the chief."""
    directory = Path(wanted)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for rank in range(1, workers):
            log_of(directory, rank).open("a").close()
    except OSError as error:
        raise UsageError(
            f"{error.filename} cannot be written ({error.strerror}): the workers' logs go there, "
            "name a directory with space where you may write"
        ) from None
    return directory


def free_ports(count: int) -> list[int]:
    """Returns ports that nothing on this machine listens on.

    They lie below the range from which the kernel takes the ports of outgoing connections, so that
    none of those grabs one before its worker listens.
    """
    candidates = list(range(20000, _first_ephemeral_port()))
    random.SystemRandom().shuffle(candidates)
    free: list[int] = []
    for port in candidates:
        if len(free) == count:
            break
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            free.append(port)
    return free


def _first_ephemeral_port() -> int:
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        first = 32768
    return first if first > 21000 else 65536


@contextmanager
def _signals() -> Iterator[Asked]:
    """Notes SIGTERM and SIGINT while the workers run."""
    asked = Asked()
    first = 0.0

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal first
        now = time.monotonic()
        if not asked.to_stop:
            first = now
        elif number == signal.SIGINT and now - first > _ECHO_SECONDS:
            asked.to_kill = True
        asked.to_stop = True

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
