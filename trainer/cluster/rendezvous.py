"""The chief's side of the meeting: gathers one greeting from every worker, then answers them all.

One line each way over TCP (see `messages`). What is checked is what would otherwise make TensorFlow
wait for ever: that every rank is there once, that all mean the same cluster and run the same
configuration.
It knows nothing of TensorFlow, of when to meet, or of what to do afterwards.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from trainer.cluster.messages import Greeting, Offer, Verdict, read_greeting
from trainer.cluster.spec import ClusterSpec, split_address
from trainer.errors import EXIT_DONE, EXIT_PEER_LOST, EXIT_USAGE, Stopped

POLL_SECONDS = 0.2
# Waiting workers send a blank line this often; one that is silent for longer than SILENCE is gone
# (its machine was cut off; a killed process closes its connection at once).
KEEPALIVE_SECONDS = 1.0
SILENCE_SECONDS = 10.0
# After a refusal the chief stays so long for workers that start a little later, to tell them why.
LINGER_SECONDS = 5.0
_HANG_UP_SECONDS = 1.0
# A greeting is far shorter, even of a thousand workers.
_LONGEST_LINE = 1 << 20


@dataclass(frozen=True)
class Clock:
    """The time that is left, and the wish to stop, which every wait looks at."""

    ends: float
    stop: Callable[[], bool]

    def left(self) -> float:
        """Returns the seconds to the deadline, 0 after it; raises Stopped when told to stop."""
        if self.stop():
            raise Stopped("told to stop while waiting for the other workers")
        return max(0.0, self.ends - time.monotonic())


@dataclass
class _Peer:
    """A connection: unknown until its greeting is read."""

    connection: socket.socket
    heard: float
    buffer: bytes = b""
    greeting: Greeting | None = None


@dataclass
class Gathering:
    """Waits on `listener` until all ranks of `spec` have greeted, one does not fit, or time is up.

    own: the chief's greeting, which the others are compared with; its problem is a refusal.
    """

    spec: ClusterSpec
    own: Greeting
    listener: socket.socket
    offer: Offer
    _peers: dict[socket.socket, _Peer] = field(default_factory=dict)
    _greeted: set[int] = field(default_factory=set)

    def run(self, clock: Clock, deadline_seconds: float) -> Verdict:
        """Returns the verdict after telling it to every worker that is there.

        All connections are closed by then, but not the listener.
        """
        with selectors.DefaultSelector() as selector:
            self.listener.setblocking(False)
            selector.register(self.listener, selectors.EVENT_READ)
            try:
                verdict = self._gather(selector, clock, deadline_seconds)
                self._tell_all(selector, verdict)
                return verdict
            finally:
                for peer in self._peers.values():
                    peer.connection.close()

    def _gather(
        self, selector: selectors.BaseSelector, clock: Clock, deadline_seconds: float
    ) -> Verdict:
        if self.own.problem:
            return self._linger(selector, clock, Verdict(EXIT_USAGE, self.own.problem))
        while True:
            left = clock.left()
            refusal = self._serve(selector, min(left, POLL_SECONDS))
            if refusal:
                return self._linger(selector, clock, Verdict(EXIT_USAGE, refusal))
            missing = self._missing()
            if not missing:
                return Verdict(lifeline_port=self.offer.port, lifeline_secret=self.offer.secret)
            if left == 0:
                names = ", ".join(self.spec.name(rank) for rank in missing)
                reason = f"{names} did not come within {deadline_seconds:g} s"
                return Verdict(EXIT_PEER_LOST, f"{reason}: look at that worker's log, or start it")

    def _missing(self) -> list[int]:
        present = {peer.greeting.rank for peer in self._peers.values() if peer.greeting}
        return [rank for rank in range(1, self.spec.world_size) if rank not in present]

    def _linger(self, selector: selectors.BaseSelector, clock: Clock, verdict: Verdict) -> Verdict:
        """Waits a little for those who were never here, so that they too learn the reason."""
        ends = time.monotonic() + min(LINGER_SECONDS, clock.left())
        while len(self._greeted) < self.spec.world_size - 1 and time.monotonic() < ends:
            self._serve(selector, min(clock.left(), POLL_SECONDS))
        return verdict

    def _serve(self, selector: selectors.BaseSelector, timeout: float) -> str:
        """Handles what has arrived; returns why the cluster cannot start, or an empty string."""
        ready = {key.fileobj for key, _ in selector.select(timeout)}
        refusal = ""
        # Who has left goes first, so that a restarted worker does not meet its own ghost.
        for peer in [peer for peer in self._peers.values() if peer.connection in ready]:
            refusal = refusal or self._hear(selector, peer)
        for peer in list(self._peers.values()):
            if time.monotonic() - peer.heard > SILENCE_SECONDS:
                self._drop(selector, peer)
        if self.listener in ready:
            self._accept(selector)
        return refusal

    def _accept(self, selector: selectors.BaseSelector) -> None:
        try:
            connection, _ = self.listener.accept()
        except OSError:  # it has hung up already
            return
        connection.setblocking(False)
        self._peers[connection] = _Peer(connection, time.monotonic())
        selector.register(connection, selectors.EVENT_READ)

    def _drop(self, selector: selectors.BaseSelector, peer: _Peer) -> None:
        selector.unregister(peer.connection)
        peer.connection.close()
        del self._peers[peer.connection]

    def _hear(self, selector: selectors.BaseSelector, peer: _Peer) -> str:
        try:
            data = peer.connection.recv(1 << 16)
        except BlockingIOError:
            return ""
        except OSError:
            data = b""
        if not data:
            self._drop(selector, peer)
            return ""
        peer.heard = time.monotonic()
        if peer.greeting:
            return ""
        peer.buffer += data
        line, newline, _ = peer.buffer.partition(b"\n")
        greeting = read_greeting(line) if newline else None
        if greeting:
            return self._admit(selector, peer, greeting)
        if newline or len(peer.buffer) > _LONGEST_LINE:
            self._drop(selector, peer)
        return ""

    def _admit(self, selector: selectors.BaseSelector, peer: _Peer, greeting: Greeting) -> str:
        others = [other for other in self._peers.values() if other.greeting]
        for other in others:
            if other.greeting and other.greeting.token == greeting.token:  # it came back
                self._drop(selector, other)
        refusal = self._objection(greeting)
        peer.greeting = greeting
        self._greeted.add(greeting.rank)
        return refusal

    def _objection(self, theirs: Greeting) -> str:
        """Returns why this worker and the cluster do not go together, or an empty string."""
        ours = self.own
        if len(theirs.workers) != len(ours.workers):
            return (
                f"rank {theirs.rank} ({theirs.where}) was told of {len(theirs.workers)} workers, "
                f"the chief ({ours.where}) of {len(ours.workers)}: give all the same cluster"
            )
        if not 0 <= theirs.rank < len(ours.workers):
            return f"rank {theirs.rank} ({theirs.where}) is outside the cluster of the chief"
        present = [peer.greeting for peer in self._peers.values() if peer.greeting]
        for other in (ours, *present):
            if other.rank == theirs.rank and other.token != theirs.token:
                return (
                    f"rank {theirs.rank} was given to two processes, {other.where} and "
                    f"{theirs.where}: every task needs an index of its own"
                )
        for rank, (here, there) in enumerate(zip(ours.workers, theirs.workers, strict=True)):
            if not _same_address(here, there, own_entry=rank in (ours.rank, theirs.rank)):
                return (
                    f"rank {rank} is {there} for rank {theirs.rank} ({theirs.where}), but {here} "
                    f"for the chief ({ours.where}): give all the same cluster"
                )
        if theirs.fingerprint != ours.fingerprint:
            return (
                f"{self.spec.name(theirs.rank)} runs another configuration than the chief "
                f"({theirs.fingerprint[:12]} and {ours.fingerprint[:12]}): start all workers with "
                "the same flags, config file and data"
            )
        return theirs.problem

    def _tell_all(self, selector: selectors.BaseSelector, verdict: Verdict) -> None:
        """Sends the verdict and lets the workers hang up first.

        Whoever closes first keeps the connection in TIME_WAIT; it should not be the chief's port.
        """
        for peer in self._peers.values():
            if peer.greeting:
                with contextlib.suppress(OSError):
                    peer.connection.sendall(verdict.line())
        # One that is stopped cannot; it must not keep the others, who have nobody to wait for.
        patience = LINGER_SECONDS if verdict.code == EXIT_DONE else _HANG_UP_SECONDS
        ends = time.monotonic() + patience
        while any(peer.greeting for peer in self._peers.values()) and time.monotonic() < ends:
            self._serve(selector, POLL_SECONDS)


def _same_address(here: str, there: str, *, own_entry: bool) -> bool:
    """Compares how two processes call a worker; some write localhost for themselves."""
    if not own_entry:
        return here == there
    try:
        return split_address(here)[1] == split_address(there)[1]
    except ValueError:
        return False
