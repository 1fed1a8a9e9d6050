"""What workers say to each other when they meet: a greeting each, and the chief's verdict to all.

One JSON object a line. A line that is none of these comes from a stranger.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from trainer.errors import EXIT_DONE


@dataclass(frozen=True)
class Greeting:
    """What a worker says. where: host and process for messages. token: new in every process.

    problem: why this worker cannot start, empty if it can.
    """

    rank: int
    workers: tuple[str, ...]
    fingerprint: str
    where: str
    token: str
    problem: str = ""

    def line(self) -> bytes:
        """Returns the greeting as one line."""
        return json.dumps({"castell": "greeting", **asdict(self)}).encode() + b"\n"


@dataclass(frozen=True)
class Offer:
    """What the chief has ready for after the meeting: its lifeline's port, and who may use it.

    problem: why it could not, which ends the meeting.
    """

    port: int = 0
    secret: str = ""
    problem: str = ""


@dataclass(frozen=True)
class Verdict:
    """What the chief answers to all: exit code 0 is go, else the reason why not.

    lifeline_port, lifeline_secret: of the chief's offer.
    """

    code: int = EXIT_DONE
    reason: str = ""
    lifeline_port: int = 0
    lifeline_secret: str = ""

    def line(self) -> bytes:
        """Returns the verdict as one line."""
        return json.dumps({"castell": "verdict", **asdict(self)}).encode() + b"\n"


def read_greeting(line: bytes) -> Greeting | None:
    """Returns the greeting in `line`; None if a stranger wrote it (a port scanner, a browser)."""
    message = _read(line, "greeting", {"rank": int, "fingerprint": str, "where": str, "token": str})
    if message is None or not isinstance(message.get("workers"), list):
        return None
    workers = tuple(str(address) for address in message.pop("workers"))
    return Greeting(workers=workers, problem=str(message.pop("problem", "")), **message)


def read_verdict(line: bytes) -> Verdict | None:
    """Returns the verdict in `line`; None if something else than a chief wrote it."""
    fields = {"code": int, "reason": str, "lifeline_port": int, "lifeline_secret": str}
    message = _read(line, "verdict", fields)
    return None if message is None else Verdict(**message)


def _read(line: bytes, kind: str, fields: dict[str, type]) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except ValueError:
        return None
    if not isinstance(message, dict) or message.get("castell") != kind:
        return None
    if not all(isinstance(message.get(name), of) for name, of in fields.items()):
        return None
    return {name: message[name] for name in (*fields, "workers", "problem") if name in message}
