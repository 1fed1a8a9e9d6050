"""What ends a run before its last step: a request to stop, a stall, a lost peer.

Nothing recovers inside the process: a broken cluster stays broken for TensorFlow. So these only
notice, say why, and leave fast with the code that tells the platform what to do.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any, NoReturn, Self

from trainer.errors import EXIT_PEER_LOST, Stopped
from trainer.run.background import Background

# How long a stalled process may spend on saying so (a hung disk must not keep it).
_LAST_WORDS_SECONDS = 3.0


class StopRequest:
    """Turns SIGTERM and SIGINT into a flag that the loop reads between calls.

        with StopRequest() as stop:
            while not stop.requested: …

    Python as process 1 ignores SIGTERM unless a handler is installed, which this does. A second
    SIGINT does what it always does. Main thread only.
    """

    def __init__(self) -> None:
        self.requested = False
        self.reason: str | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def rearm(self) -> None:
        """Takes SIGTERM back from TensorFlow, whose coordination service installs a handler.

        Call it once the strategy works, inside `sigterm_waits`: TensorFlow would swallow a signal
        that comes in between.
        """
        signal.signal(signal.SIGTERM, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        self.reason = self.reason or f"told to stop ({signal.Signals(number).name})"
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def sigterm_waits() -> Iterator[None]:
    """Keeps SIGTERM pending inside; it is delivered at the end, to whoever handles it then.

    Threads that are started inside never get it, which matters: the system hands it to any thread
    that takes it, and so it must be around the imports too, which start some. Main thread only.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def stop_raises() -> Iterator[None]:
    """Makes SIGTERM raise Stopped inside, for work that has no step boundary to wait for.

    What was half-written is then removed on the way out, as after any other error.
    """

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        raise Stopped(f"told to stop ({signal.Signals(number).name})")

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Watchdog:
    """Ends the process with 138 when `beat` was not called for `timeout_seconds`.

        with Watchdog(300, on_stall) as watchdog:
            while …:
                train()
                watchdog.beat()

    The stacks of all threads go to stderr first, then `on_stall(reason)` may say farewell. Time
    in which this very process was stopped (SIGSTOP) does not count.

    hint: ends the reason.
    """

    def __init__(
        self, timeout_seconds: float, on_stall: Callable[[str], None], hint: str = ""
    ) -> None:
        self._timeout_seconds = timeout_seconds
        self._on_stall = on_stall
        self._progress: Callable[[], int] = int
        self._hint = hint
        self._beats = 0
        self._watching = False
        self._background = Background("watchdog", self._watch)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def beat(self) -> None:
        """Says that the loop moves."""
        self._beats += 1

    def follow(self, progress: Callable[[], int]) -> None:
        """From now on a change of `progress()`, called in another thread, counts as a beat."""
        self._progress = progress

    def start(self) -> None:
        """Begins to watch, if it does not yet; counts as a beat."""
        self.beat()
        if not self._watching:
            self._watching = True
            self._background.start()

    def stop(self) -> None:
        """Ends watching."""
        self._background.stop()

    def _watch(self) -> None:
        tick = min(1.0, self._timeout_seconds / 10)
        seen, silent, last = self._signs(), 0.0, time.monotonic()
        while not self._background.ended.wait(tick):
            now = time.monotonic()
            # A tick that took much longer than asked: this process was stopped, not its peers.
            silent, last = silent + min(now - last, 2 * tick), now
            if seen != (signs := self._signs()):
                seen, silent = signs, 0.0
            elif silent >= self._timeout_seconds:
                self._give_up()

    def _signs(self) -> tuple[int, int]:
        return self._beats, self._progress()

    def _give_up(self) -> NoReturn:
        reason = f"no progress for {self._timeout_seconds:g} s{self._hint}"
        with contextlib.suppress(Exception):
            sys.stderr.write(f"castell: error: {reason}; the stacks of all threads follow\n")
            sys.stderr.flush()
            faulthandler.dump_traceback(sys.stderr.fileno(), all_threads=True)
        leave_peers(reason, self._on_stall)


def leave_peers(reason: str, farewell: Callable[[str], None]) -> NoReturn:
    """Ends the process with 138 from any thread; `farewell(reason)` may take a few seconds."""
    last_words = threading.Thread(target=farewell, args=(reason,), daemon=True)
    last_words.start()
    last_words.join(_LAST_WORDS_SECONDS)
    leave(EXIT_PEER_LOST)


# Found by killing (-9), stopping and delaying one of two workers under TensorFlow 2.21; a test pins
# it. `Collective ops is aborted by` heads whatever reason a peer or the coordinator gave; a
# worker's own error (in its Task or input) comes without it.
_ABORTED = "Collective ops is aborted by:"
_PEER_TEXT = re.compile(
    r"collective ops is aborted|coordination ?service|stopped sending heartbeats"
    r"|connection (reset|refused)|socket closed|broken pipe|/tensorflow\.WorkerService/"
    r"|collective.*(ring|peer|cancel)",
    re.IGNORECASE,
)
_TASK = re.compile(r"/job:(\w+)(?:/replica:\d+)?/task:(\d+)")
_ALWAYS = ("UnavailableError", "AbortedError", "CancelledError", "DeadlineExceededError")


def peer_failure(error: BaseException, own: str = "") -> str | None:
    """Returns one line that says how another worker was lost, or None if `error` is our own.

    own: this worker ("chief 0"), which TensorFlow may name as the one that noticed.

    Only meaningful for an error of a step in a cluster of several workers: there,
    Unavailable, Aborted, Cancelled and DeadlineExceeded have no other cause; other TensorFlow
    errors count when their text speaks of the collective or the connection.
    """
    import tensorflow as tf

    if not isinstance(error, tf.errors.OpError):
        return None
    message = str(error.message)
    if type(error).__name__ not in _ALWAYS and not _PEER_TEXT.search(message):
        return None
    said = message.partition(_ABORTED)[2] or _last_line(message)
    detail = said.strip().splitlines()[0].strip() if said.strip() else type(error).__name__
    task = _TASK.search(said)
    named = f"{task[1]} {task[2]}" if task else own
    who = named if named != own else "another worker"
    return f"{who} was lost: {detail}"


def _last_line(message: str) -> str:
    """What remains of TensorFlow's text without its account of where the graph was made."""
    lines = [line.strip() for line in message.splitlines()]
    told = [line for line in lines if line and not line.startswith(("File ", "[[", "Detected at"))]
    return told[-1] if told else ""


def leave(code: int) -> NoReturn:
    """Ends the process at once, after flushing what was printed and logged.

    An ordinary exit runs TensorFlow's destructors, which wait for peers that may be gone.
    """
    for handler in logging.getLogger().handlers:
        with contextlib.suppress(Exception):
            handler.flush()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)
