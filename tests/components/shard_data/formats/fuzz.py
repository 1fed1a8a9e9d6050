"""Feeds damaged files of every format to the readers: only a `UsageError` may come out.

    python -m tests.components.shard_data.formats.fuzz SECONDS [SEED]

Prints the seed and the case that broke something, so that it can be had again. A crash of the
process counts, too, so tests run it as one of its own.
"""

from __future__ import annotations

import faulthandler
import random
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.components.shard_data.formats import reads
from trainer.errors import UsageError

# A damaged length must not take the machine's memory.
_MOST_BYTES = 6 << 30
_PIECE_BYTES = (1, 100, reads.WHOLE)


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Returns the bytes with one to four things done to them."""
    out = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        if not out:
            break
        at = chance.randrange(len(out))
        end = min(len(out), at + chance.choice((1, 1, 2, 4, 8, 50)))
        what = chance.randrange(7)
        if what == 0:
            out[at] ^= 1 << chance.randrange(8)
        elif what == 1:
            out[at:end] = chance.randbytes(end - at)
        elif what == 2:
            del out[at:end]
        elif what == 3:
            out[at:at] = chance.choice((b'"', b"\n", b",", b"\r", b"{", b"\0" * 4, b"\xff" * 8))
        elif what == 4:
            out[at:at] = out[at:end]
        elif what == 5:
            del out[at:]
        else:
            out[at:end] = b"\xff" * (end - at)
    return bytes(out)


def _require_good(message: str, name: str) -> None:
    """The line names the file or the column, and is the same each time."""
    assert name.partition("/")[0] in message or "column" in message, message
    assert " object at 0x" not in message, message


def run(seconds: float, seed: int) -> int:
    """Reads damaged files for a while; returns how many."""
    samples = sorted(reads.samples().items())
    end, cases = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        chance = random.Random(f"{seed} {cases}")
        name, data = samples[cases % len(samples)]
        folder = Path(tempfile.mkdtemp())
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(damaged(data, chance))
        print(f"seed {seed}, case {cases}: {name}", file=sys.stderr, flush=True)
        source = folder / name.partition("/")[0]
        try:
            reads.read(
                source,
                folder / "work",
                chance.choice(_PIECE_BYTES),
                max_bad_rows=chance.choice((0, 9)),
            )
        except UsageError as error:
            _require_good(str(error), name)
        shutil.rmtree(folder)
        cases += 1
    return cases


if __name__ == "__main__":
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    print(run(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
