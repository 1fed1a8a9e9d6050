"""The bytes that travel from where a shard is written to where figures are merged. No pickle."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
# Of all columns of one shard; what is in it is known here only.
State = bytes

# Up to so many rows a split, every value of a column is kept: figures are exact.
MOST_KEPT = 1_000_000
# Beyond it, so many different values of a part are still told apart: fewer where there are many
# parts, so that all states together stay small.
_MOST_APART, _LEAST_APART = 4096, 512
_ALL_APART = 1 << 18
# The distinct values of larger ones are estimated from their smallest hashes; the standard error
# is one over the root of how many are kept.
HASHES = 4096

_LENGTH = struct.Struct("<Q")


def apart(rows: int, split_rows: int) -> int | None:
    """Returns how many different values a part of a split keeps; None: all."""
    if split_rows <= MOST_KEPT:
        return None
    return max(_LEAST_APART, min(_MOST_APART, _ALL_APART * rows // split_rows))


@dataclass(frozen=True)
class Part:
    """What one shard says of one column: JSON values and flat arrays."""

    facts: Mapping[str, Any]
    arrays: Mapping[str, Array] = field(default_factory=dict)


def pack(rows: int, parts: Sequence[Part]) -> State:
    """Returns the state of a shard of `rows` rows, one part a column."""
    header = {
        "rows": rows,
        "parts": [
            {"facts": part.facts, "arrays": [(n, a.dtype.str, a.size) for n, a in _sorted(part)]}
            for part in parts
        ],
    }
    text = json.dumps(header).encode()
    data = [np.ascontiguousarray(a).tobytes() for part in parts for _, a in _sorted(part)]
    return b"".join((_LENGTH.pack(len(text)), text, *data))


def _sorted(part: Part) -> list[tuple[str, Array]]:
    return sorted(part.arrays.items())


def unpack(state: State) -> tuple[int, list[Part]]:
    """Returns rows and parts. Inverse of `pack`."""
    (length,) = _LENGTH.unpack_from(state)
    at = _LENGTH.size + length
    header = json.loads(state[_LENGTH.size : at])
    parts = []
    for described in header["parts"]:
        arrays = {}
        for name, dtype, size in described["arrays"]:
            arrays[name] = np.frombuffer(state, dtype, size, at)
            at += arrays[name].nbytes
        parts.append(Part(described["facts"], arrays))
    return header["rows"], parts
