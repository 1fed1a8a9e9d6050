"""The cluster as one process sees it: who trains, where they listen, and which one this is.

A plain value. How it is found out stands in `resolve`, what is made of it in `strategy`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

Role = Literal["chief", "worker", "evaluator", "ps"]

# Of a number that counts tasks.
_MOST_DIGITS = 9
# Characters of a value that an error repeats.
_LONGEST_VALUE = 60
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\],]+):(\d{1,5})")


@dataclass(frozen=True)
class ClusterSpec:
    """One process's place in the cluster.

    role: "chief" also for a process that trains alone. rank: place in `workers` for chief (0) and
    worker (≥ 1), own index for evaluator and ps. workers: host:port of each process that trains,
    chief first; empty or one entry: a single process. Port 0: this process is to start that
    worker itself (`--workers`). source: what decided. notes: in words, what was decided on the way.
    """

    role: Role = "chief"
    rank: int = 0
    workers: tuple[str, ...] = ()
    source: str = "this machine"
    notes: tuple[str, ...] = ()

    @property
    def world_size(self) -> int:
        """How many processes train together, at least 1."""
        return max(1, len(self.workers))

    @property
    def is_chief(self) -> bool:
        """Whether this process writes checkpoints, metrics and outputs."""
        return self.role == "chief"

    @property
    def starts_here(self) -> bool:
        """Whether the workers do not exist yet: this process forks them (`local.run_local`)."""
        return any(address.endswith(":0") for address in self.workers)

    def name(self, rank: int) -> str:
        """Returns how messages call a worker: "rank 1 (host:port)"."""
        return f"{'chief' if rank == 0 else f'rank {rank}'} ({self.workers[rank]})"

    def tf_config(self) -> dict[str, Any]:
        """Returns the canonical TF_CONFIG: chief, then workers; no ps, no evaluator in `cluster`.

        The same text in every process, however the platform spelt it, so that TensorFlow names
        the tasks alike everywhere.
        """
        cluster = {"chief": list(self.workers[:1]), "worker": list(self.workers[1:])}
        index = self.rank - 1 if self.role == "worker" else self.rank
        return {
            "cluster": {role: hosts for role, hosts in cluster.items() if hosts},
            "task": {"type": self.role, "index": index},
        }


def whole(text: str) -> int | None:
    """Returns the whole number from 0 on that the text is; None if it is none, or endless."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def short(text: str) -> str:
    """Returns as much of a text as an error repeats."""
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."


def split_address(address: str) -> tuple[str, int]:
    """Returns host (IPv6 without brackets) and port (1-65535) of "host:port".

    Raises:
      ValueError: it is not written so.
    """
    match = _ADDRESS.fullmatch(address)
    if not match or not 0 < int(match[2]) < 65536:
        raise ValueError(f"expected host:port, got {short(repr(address))}")
    return match[1].strip("[]"), int(match[2])
