"""The lifeline's own process: holds the connections, and knows at once when a peer is gone.

A process beside each worker, so that nothing the worker does (a native call that keeps Python's
lock for a minute) looks like a death, and nothing that happens to the worker goes unnoticed. The
watches of a cluster form a star around the chief's. They say that they live several times within
the heartbeat timeout; the chief's tells the others who was lost.

    worker  ──control (JSON lines, a socket pair)──  its watch  ──TCP──  the chief's watch

A watch ends with its worker. It uses the standard library alone and is started by file name, so it
costs 30 ms and no TensorFlow. The worker's side stands in `lifeline`.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from typing import Any

# A firewall that drops packets is found out by waiting.
SETUP_SECONDS = 5.0
# A worker that does not even say "heard" holds Python's lock: it is ended from outside.
HEARD_SECONDS = 1.0
# After "heard" it writes its last words and leaves; who writes to a hung disk is ended too.
LEAVE_SECONDS = 4.0
# Late by so much is still alive: a busy machine.
MARGIN_SECONDS = 1.0
_LONGEST_TICK_SECONDS = 0.5
# Sent last words arrive only if the connection is not reset: the other side hangs up first.
_DRAIN_SECONDS = 0.5
_LONGEST_LINE = 1 << 16
# The trainer's exit codes (see `errors`): ends that all workers have agreed on before, and the one
# of a worker that has noticed a loss by itself.
_AGREED = (0, 2, 3, 143)
_PEER_LOST = 138


@dataclass
class Line:
    """One connection that speaks JSON lines; a blank line only says that its owner lives."""

    connection: socket.socket
    rank: int | None = None
    silent_seconds: float = 0.0
    left: bool = False
    _buffer: bytes = b""

    def receive(self) -> list[dict[str, Any]] | None:
        """Returns the messages that have arrived; None once the other side is gone."""
        try:
            data = self.connection.recv(_LONGEST_LINE)
        except BlockingIOError:
            return []
        except OSError:
            return None
        if not data or len(self._buffer) > _LONGEST_LINE:
            return None
        self.silent_seconds = 0.0
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        return [message for message in map(_read, lines) if message]

    def send(self, **message: Any) -> None:
        """Sends a message, or a blank line; what can't be sent now is lost with its reader."""
        text = json.dumps(message).encode() if message else b""
        with contextlib.suppress(OSError):
            self.connection.sendall(text + b"\n")


def _read(line: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        message = json.loads(line)
        return message if isinstance(message, dict) else {}
    return {}


@dataclass
class Watch:
    """Watches one worker's peers: all of them beside the chief, the chief beside the others.

    names: what messages call each rank. listener: of the chief. secret: what a peer must know.
    kill: a byte written there ends the worker whatever it does.
    """

    rank: int
    names: list[str]
    heartbeat_seconds: float
    worker: int
    control: Line
    kill: int
    secret: str
    listener: socket.socket | None = None
    _peers: dict[int, Line] = field(default_factory=dict)
    _strangers: list[Line] = field(default_factory=list)
    _setup_left: float | None = None
    _end_worker_at: float | None = None
    _lost: str = ""
    _heard: bool = False
    _goodbye: dict[str, Any] | None = None
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def run(self) -> None:
        """Returns when the worker has ended."""
        tick = min(self.heartbeat_seconds / 4, _LONGEST_TICK_SECONDS)
        last = beat = time.monotonic()
        self._selector.register(self.control.connection, selectors.EVENT_READ, self._command)
        if self.listener:
            self._selector.register(self.listener, selectors.EVENT_READ, self._accept)
        while not self.control.left and os.getppid() == self.worker:
            # What lies in the sockets is read before anybody is accused: this process may have
            # been stopped itself, and then only a short time counts.
            for key, _ in self._selector.select(tick):
                key.data()
            now = time.monotonic()
            self._count(min(now - last, 2 * tick))
            last = now
            if now - beat >= tick:
                beat = now
                self._beat()
        self._command()
        self._farewell()

    def _beat(self) -> None:
        if not _stopped(self.worker):
            for peer in self._peers.values():
                peer.send()
        if self._end_worker_at and time.monotonic() >= self._end_worker_at:
            self._end_worker()

    def _count(self, seconds: float) -> None:
        """Adds to everybody's silence, and acts on what is too long."""
        for rank, peer in list(self._peers.items()):
            peer.silent_seconds += seconds
            if peer.silent_seconds > self.heartbeat_seconds + MARGIN_SECONDS and not peer.left:
                self._lose(rank, f"silent for {self.heartbeat_seconds:g} s")
        for stranger in self._strangers[:]:
            stranger.silent_seconds += seconds
            if stranger.silent_seconds > SETUP_SECONDS:
                self._drop(stranger)
        if self._setup_left is not None:
            self._setup_left -= seconds
            missing = [rank for rank in range(1, len(self.names)) if rank not in self._peers]
            if self._setup_left <= 0 or not missing:
                self._setup_left = None
                for rank in missing:
                    self._without(self.names[rank])
                self.control.send(ready=True)

    # What the own worker says.

    def _command(self) -> None:
        messages = self.control.receive()
        if messages is None:
            self.control.left = True
        for message in messages or ():
            if "connect" in message:
                self._set_up(message["connect"])
            elif "goodbye" in message:
                self._goodbye = message
                for peer in self._peers.values():
                    peer.send(**message)
                self._part_if_all_do()
            elif "heard" in message:
                self._heard = True
                self._end_worker_at = time.monotonic() + LEAVE_SECONDS

    def _set_up(self, address: list[Any]) -> None:
        """The workers have met: the chief's watch expects the others, theirs look for it."""
        if self.rank == 0:
            self._setup_left = SETUP_SECONDS
            return
        line = self._connect(str(address[0]), int(address[1]), str(address[2]))
        if line is None:
            self._without(self.names[0])
        else:
            self._admit(line, 0)
        self.control.send(ready=True)

    def _connect(self, host: str, port: int, secret: str) -> Line | None:
        ends = time.monotonic() + SETUP_SECONDS
        while (left := ends - time.monotonic()) > 0:
            with contextlib.suppress(OSError):
                line = Line(socket.create_connection((host, port), timeout=left))
                line.send(castell="lifeline", rank=self.rank, secret=secret)
                while (messages := line.receive()) == []:
                    pass
                if messages and messages[0].get("castell") == "lifeline":
                    line.connection.setblocking(False)
                    return line
                line.connection.close()
            time.sleep(0.1)
        return None

    def _without(self, name: str) -> None:
        self.control.send(
            note=f"no lifeline to {name} within {SETUP_SECONDS:g} s (a firewall? see "
            "--lifeline-port): TensorFlow alone notices if it is lost"
        )

    # What the peers say.

    def _accept(self) -> None:
        assert self.listener is not None
        with contextlib.suppress(OSError):
            connection, _ = self.listener.accept()
            connection.setblocking(False)
            line = Line(connection)
            self._strangers.append(line)
            self._selector.register(connection, selectors.EVENT_READ, lambda: self._greet(line))

    def _greet(self, line: Line) -> None:
        """Admits who knows the secret; anybody else is a stranger, and nothing is lost with it."""
        messages = line.receive()
        if messages == []:
            return
        self._drop(line, close=False)
        hello = messages[0] if messages else {}
        known, rank = hello.get("secret") == self.secret, hello.get("rank")
        if not known or not isinstance(rank, int) or not 0 < rank < len(self.names):
            line.connection.close()
            return
        line.send(castell="lifeline")
        self._admit(line, rank)

    def _admit(self, line: Line, rank: int) -> None:
        line.rank = rank
        line.silent_seconds = 0.0
        self._peers[rank] = line
        if self._lost:
            line.send(lost=self._lost)
        self._selector.register(
            line.connection, selectors.EVENT_READ, lambda: self._hear(line, rank)
        )

    def _drop(self, stranger: Line, *, close: bool = True) -> None:
        self._strangers.remove(stranger)
        self._selector.unregister(stranger.connection)
        if close:
            stranger.connection.close()

    def _hear(self, line: Line, rank: int) -> None:
        messages = line.receive()
        for message in messages or ():
            if "lost" in message and not self._goodbye:
                self._tell(str(message["lost"]))
            elif "goodbye" in message:
                self._note_end(line, rank, int(message["goodbye"]), str(message["reason"]))
            elif "parted" in message:
                self.control.send(parted=True)
        if messages is None:
            self._selector.unregister(line.connection)
            line.connection.close()
            if self._peers.get(rank) is line:  # and hasn't come back on another connection
                del self._peers[rank]
                if not line.left:
                    self._lose(rank, "connection closed")
                self._part_if_all_do()

    def _note_end(self, line: Line, rank: int, code: int, reason: str) -> None:
        line.left = True
        self._part_if_all_do()
        if code in _AGREED:
            self.control.send(left=f"{self.names[rank]} ended with {code}: {reason}")
        elif code == _PEER_LOST:
            self._lose(rank, f"it gave up ({reason})")
        else:
            self._lose(rank, "it failed: see its log")

    # Losing one, and leaving.

    def _part_if_all_do(self) -> None:
        """Lets this worker leave once all have said goodbye, which the chief's watch knows.

        TensorFlow fails where a collective has ended for one worker, which leaves, and not quite
        for another.
        """
        waits_for = [p for r, p in self._peers.items() if not p.left or (self.rank and r == 0)]
        if not self._goodbye or waits_for:
            return
        for peer in self._peers.values():
            peer.send(parted=True)
        self.control.send(parted=True)

    def _lose(self, rank: int, how: str) -> None:
        if self._goodbye:
            return
        reason = self._lost or f"lost {self.names[rank]}: {how}"
        for peer in self._peers.values():
            peer.send(lost=reason)
        self._tell(reason)

    def _tell(self, reason: str) -> None:
        if self._lost:
            return
        self._lost = reason
        self._end_worker_at = time.monotonic() + HEARD_SECONDS
        self.control.send(lost=reason)

    def _end_worker(self) -> None:
        self._end_worker_at = None
        if not self._heard:
            with contextlib.suppress(OSError):
                print(f"castell: error: {self._lost}", file=sys.stderr, flush=True)
        os.write(self.kill, b"x")
        if sys.platform != "linux":
            os.kill(self.worker, signal.SIGKILL)

    def _farewell(self) -> None:
        """Lets the others hang up first, so that the last message reaches them."""
        if not self._goodbye or self._lost:
            return
        for peer in self._peers.values():
            with contextlib.suppress(OSError):
                peer.connection.shutdown(socket.SHUT_WR)
        ends = time.monotonic() + _DRAIN_SECONDS
        while self._peers and time.monotonic() < ends:
            for key, _ in self._selector.select(0.1):
                if key.fileobj not in (self.control.connection, self.listener):
                    key.data()


def _stopped(pid: int) -> bool:
    """Returns whether a process was stopped by a signal (on Linux; elsewhere never)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except OSError:
        return False


def main(settings: dict[str, Any]) -> None:
    """Runs the watch that `settings` describe; see `lifeline.Lifeline`."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    control = socket.socket(fileno=settings.pop("control"))
    control.setblocking(False)
    listener = settings.pop("listener")
    Watch(
        control=Line(control),
        listener=socket.socket(fileno=listener) if listener >= 0 else None,
        **settings,
    ).run()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
