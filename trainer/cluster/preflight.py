"""All workers meet before TensorFlow's server starts.

MultiWorkerMirroredStrategy waits for ever, without a word, for a peer that never comes, that has
the wrong index or that was told of another cluster. So the chief first listens on its own port,
the others connect to it, and all learn within a deadline that everything fits, or what does not.
Every socket is closed again before TensorFlow binds the port.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import replace

from trainer.cluster.messages import Greeting, Offer, Verdict, read_verdict
from trainer.cluster.ports import bind
from trainer.cluster.rendezvous import KEEPALIVE_SECONDS, POLL_SECONDS, Clock, Gathering
from trainer.cluster.spec import ClusterSpec, split_address
from trainer.errors import EXIT_DONE, EXIT_USAGE, PeerLost, UsageError

_CONNECT_SECONDS = 5.0
# All have the same deadline; the chief, whose clock may be a little late, knows who is missing.
_VERDICT_PATIENCE_SECONDS = 1.0


def meet(
    spec: ClusterSpec,
    *,
    fingerprint: str,
    deadline_seconds: float,
    stop: Callable[[], bool] = lambda: False,
    offer: Offer | None = None,
) -> Verdict:
    """Returns once every worker of the cluster is there and agrees; at once for a single process.

    fingerprint: of everything that must be equal on all workers. stop: looked at several times a
    second; when it says yes, the wait ends with Stopped. offer: the chief's lifeline, which stands
    in the verdict that all get.

    Raises:
      PeerLost: someone did not come in time; the message names who.
      UsageError: two processes have one index, were told of different clusters or configurations,
        or this process's port is taken by another program. All workers that are there raise it.
      Stopped: `stop` said so.
    """
    if spec.world_size == 1 or spec.role not in ("chief", "worker"):
        return Verdict()
    clock = Clock(time.monotonic() + deadline_seconds, stop)
    offer = offer or Offer()
    where = f"{socket.gethostname()}, process {os.getpid()}"
    own = Greeting(spec.rank, spec.workers, fingerprint, where, uuid.uuid4().hex, offer.problem)
    if spec.is_chief:
        verdict = _gather(spec, own, clock, deadline_seconds, offer)
    else:
        verdict = _join(spec, own, clock, deadline_seconds)
    if verdict.code == EXIT_USAGE:
        raise UsageError(verdict.reason)
    if verdict.code != EXIT_DONE:
        raise PeerLost(verdict.reason)
    return verdict


def _gather(
    spec: ClusterSpec, own: Greeting, clock: Clock, deadline_seconds: float, offer: Offer
) -> Verdict:
    listener = _bind(spec, clock)
    if listener is None:
        # Perhaps another process thinks that it is the chief here: then both should know.
        return _report(own, clock, _port_taken(spec))
    with listener:
        listener.listen(max(128, spec.world_size))
        return Gathering(spec, own, listener, offer).run(clock, deadline_seconds)


def _join(spec: ClusterSpec, own: Greeting, clock: Clock, deadline_seconds: float) -> Verdict:
    probe = _bind(spec, clock)
    if probe is None:
        problem = _port_taken(spec)
        return _report(replace(own, problem=problem), clock, problem)
    probe.close()
    pause = 0.05
    while clock.left():
        # Name not known yet, nobody listening, a dying predecessor: all the same, come again.
        verdict = _ask(spec.workers[0], own, clock)
        if verdict:
            return verdict
        time.sleep(min(pause, clock.left()))
        pause = min(pause * 2, 1.0)
    raise PeerLost(
        f"{spec.name(0)} did not answer within {deadline_seconds:g} s: look at the chief's log, or "
        "check that it runs and can be reached at this name and port"
    )


def _report(own: Greeting, clock: Clock, problem: str) -> Verdict:
    """Tells the chief, if one is there, that this process cannot start; returns what it says."""
    soon = replace(clock, ends=time.monotonic() + min(_CONNECT_SECONDS, clock.left()))
    return _ask(own.workers[0], own, soon) or Verdict(EXIT_USAGE, problem)


def _bind(spec: ClusterSpec, clock: Clock) -> socket.socket | None:
    """Returns a socket bound to this worker's port on all interfaces, None if it stays taken."""
    return bind(*split_address(spec.workers[spec.rank]), clock.left)


def _port_taken(spec: ClusterSpec) -> str:
    return (
        f"{spec.name(spec.rank)} cannot listen on its port: another process holds it (perhaps with "
        "the same task index), or it needs rights; stop that process or choose another port"
    )


def _ask(address: str, own: Greeting, clock: Clock) -> Verdict | None:
    """Greets the chief and waits for its answer; None if the connection fails before that."""
    try:
        timeout = max(0.01, min(_CONNECT_SECONDS, clock.left()))
        with socket.create_connection(split_address(address), timeout=timeout) as connection:
            # A connection to a free local port can meet itself.
            if connection.getsockname() == connection.getpeername():
                return None
            connection.sendall(own.line())
            return _await_verdict(connection, clock)
    except OSError:
        return None


def _await_verdict(connection: socket.socket, clock: Clock) -> Verdict | None:
    received = b""
    connection.settimeout(POLL_SECONDS)
    greeted = time.monotonic()
    while clock.left() or time.monotonic() < clock.ends + _VERDICT_PATIENCE_SECONDS:
        try:
            data = connection.recv(1 << 16)
        except TimeoutError:
            if time.monotonic() - greeted > KEEPALIVE_SECONDS:
                connection.sendall(b"\n")
                greeted = time.monotonic()
            continue
        received += data
        line, newline, _ = received.partition(b"\n")
        if newline:
            return read_verdict(line)
        if not data:
            return None
    return None
