"""A connection between workers that makes the loss of a peer known at once.

TensorFlow notices a killed peer only if it is receiving from it just then, else after its heartbeat
timeout; while its servers connect, never. So each worker starts a *watch*, a small process that
holds the connections (see `watch`), and this is the worker's side of it: a thread that hears of a
loss and ends the worker with 138. A worker that cannot hear, because a native call keeps Python's
lock, is ended by the watch, past Python.

    with lifeline(spec, port=0, heartbeat_timeout_seconds=10, end=faults.…) as line:
        line.connect(meet(spec, …, lifeline=line.offer))
        …

Leaving the block says goodbye with the exit code, so that the others know an agreed end from a
loss. Where no connection can be made, TensorFlow's own detection remains.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from trainer.cluster import watch
from trainer.cluster.deadline import exit_once_readable
from trainer.cluster.messages import Offer, Verdict
from trainer.cluster.ports import bind
from trainer.cluster.spec import ClusterSpec, split_address
from trainer.errors import EXIT_DONE, EXIT_FAULT, EXIT_PEER_LOST, CastellError, PeerLost

# TensorFlow may notice a loss up to the watch's margin before it; the watch knows who it was.
_SECOND_OPINION_SECONDS = watch.MARGIN_SECONDS + 1.0
# After an agreed end nobody has much left to do; who waits longer waits for somebody in trouble.
_PART_SECONDS = 3.0

End = Callable[[str], NoReturn]


@contextmanager
def lifeline(
    spec: ClusterSpec, *, port: int, heartbeat_timeout_seconds: float, end: End
) -> Iterator[Lifeline]:
    """Yields this worker's lifeline; without a word if it trains alone.

    port: the chief's, 0 for any that is free. heartbeat_timeout_seconds: silence after which a peer
    is lost. end: called in a thread of its own with the reason ("lost rank 2 (host:port): …");
    must end the process with 138.
    """
    line = Lifeline(spec, port, heartbeat_timeout_seconds, end)
    try:
        yield line
    except CastellError as error:
        if isinstance(error, PeerLost):
            line.wait_for_reason()
        line.say_goodbye(error.exit_code, str(error))
        raise
    except BaseException:
        line.say_goodbye(EXIT_FAULT, "")
        raise
    line.say_goodbye(EXIT_DONE, "the training is done")


class Lifeline:
    """One worker's end of the line; use it through `lifeline`.

    offer: what the chief tells the others when they meet.
    """

    def __init__(
        self, spec: ClusterSpec, port: int, heartbeat_timeout_seconds: float, end: End
    ) -> None:
        self.offer = Offer()
        self._spec = spec
        self._end = end
        self._control: socket.socket | None = None
        self._ready = threading.Event()
        self._lost = threading.Event()
        self._parted = threading.Event()
        self._left: list[str] = []
        self._blind = False
        if spec.world_size == 1:
            return
        listener = self._listen(port) if spec.is_chief else None
        if not self.offer.problem:
            self._start(listener, heartbeat_timeout_seconds)

    def connect(self, verdict: Verdict) -> None:
        """Connects to the peers, who have met; from here on the loss of one is known at once.

        Takes milliseconds, or, where a firewall is in the way, a few seconds and a line that says
        so.
        """
        if self._control:
            host, _ = split_address(self._spec.workers[0])
            self._tell(connect=[host, verdict.lifeline_port, verdict.lifeline_secret])
            self._ready.wait(2 * watch.SETUP_SECONDS)

    def wait_for_reason(self) -> None:
        """Gives the watch a moment to name the loss that TensorFlow has noticed, if it sees all.

        If it does, the process ends here, in the thread that heard it.
        """
        if self._ready.is_set() and not self._blind and self._lost.wait(_SECOND_OPINION_SECONDS):
            time.sleep(watch.LEAVE_SECONDS)

    def say_goodbye(self, code: int, reason: str) -> None:
        """Tells the others how this worker ends: lost for them if it failed, else just gone.

        After an agreed end it waits a moment until all have said goodbye.
        """
        self._tell(goodbye=code, reason=reason)
        if self._control and code not in (EXIT_FAULT, EXIT_PEER_LOST):
            self._parted.wait(_PART_SECONDS)

    def departures(self) -> list[str]:
        """Returns who has left in an agreed way, and how."""
        return self._left[:]

    def _listen(self, port: int) -> socket.socket | None:
        host, _ = split_address(self._spec.workers[0])
        listener = bind(host, port)
        if listener is None:
            problem = (
                f"lifeline_port ({port}): another process of the chief's machine holds it, or it "
                "needs rights; choose another port, or 0 for any that is free"
            )
            self.offer = Offer(problem=problem)
            return None
        listener.listen(max(128, self._spec.world_size))
        listener.setblocking(False)
        self.offer = Offer(listener.getsockname()[1], uuid.uuid4().hex)
        return listener

    def _start(self, listener: socket.socket | None, heartbeat_timeout_seconds: float) -> None:
        self._control, theirs = socket.socketpair()
        # This process keeps its write end too: only a byte may end it, not the watch's death.
        self._kill = os.pipe()
        passed = [theirs.fileno(), self._kill[1], *([listener.fileno()] if listener else [])]
        settings = {
            "rank": self._spec.rank,
            "names": [self._spec.name(rank) for rank in range(self._spec.world_size)],
            "heartbeat_seconds": heartbeat_timeout_seconds,
            "worker": os.getpid(),
            "control": theirs.fileno(),
            "kill": self._kill[1],
            "listener": listener.fileno() if listener else -1,
            "secret": self.offer.secret,
        }
        command = [sys.executable, "-I", "-S", str(Path(watch.__file__)), json.dumps(settings)]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=passed,
                # Ctrl-C is for the worker, which says how it ends.
                start_new_session=True,
            )
        except OSError as error:
            self._warn(f"no lifeline to the other workers ({error.strerror}): TensorFlow alone")
            self._control = None
            return
        finally:
            theirs.close()
            if listener:
                listener.close()
        exit_once_readable(self._kill[0], EXIT_PEER_LOST)
        threading.Thread(target=self._listen_to_watch, name="lifeline", daemon=True).start()

    def _tell(self, **message: Any) -> None:
        if self._control:
            with contextlib.suppress(OSError):
                self._control.sendall(json.dumps(message).encode() + b"\n")

    def _listen_to_watch(self) -> None:
        assert self._control is not None
        with self._control.makefile("rb") as lines:
            for line in lines:
                self._hear(json.loads(line))
        if not self._parted.is_set():
            for event in (self._ready, self._parted):
                event.set()
            self._warn("the lifeline's process is gone: TensorFlow alone notices a lost worker now")

    def _hear(self, message: dict[str, str]) -> None:
        if "note" in message:
            self._blind = True
            self._warn(message["note"])
        elif "left" in message:
            self._left.append(message["left"])
        elif "ready" in message:
            self._ready.set()
        elif "parted" in message:
            self._parted.set()
        else:
            self._lost.set()
            self._tell(heard=True)
            self._end(message["lost"])

    def _warn(self, text: str) -> None:
        print(f"castell: warning: {text}", file=sys.stderr, flush=True)
