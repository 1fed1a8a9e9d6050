"""An output directory that appears whole or not at all, and replaces only what is its own kind.

Files are written into a directory beside the place, which is then renamed.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trainer.errors import UsageError


@contextmanager
def replacing(path: str, *, marker: str, names: frozenset[str], kind: str) -> Iterator[Path]:
    """Yields an empty local directory that becomes `path` if the body ends well.

    Args:
      path: a local directory; empty, absent, or an earlier output of the same kind.
      marker: the file, relative to the directory, that every output of this kind has.
      names: what may stand in such a directory; anything else is somebody's work and stays.
      kind: what messages call it, like "evaluation".

    Raises:
      UsageError: `path` holds something else, is a file or a URL, or cannot be written.
    """
    if "://" in path:
        raise UsageError(f"--output {path}: name a local directory, and copy it afterwards")
    place = Path(path).absolute()
    try:
        if place.exists() and not place.is_dir():
            raise UsageError(f"--output {place} is a file: name a directory")
        held = {entry.name for entry in place.iterdir()} if place.exists() else set()
    except OSError as error:
        raise UsageError(f"--output {place}: {error.strerror}") from None
    if held and (held - names or not (place / marker).is_file()):
        raise UsageError(
            f"--output {place} is not empty and holds more than an earlier {kind}: choose another "
            "directory"
        )
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    except OSError as error:
        raise UsageError(f"--output {place}: {error.strerror}") from None
    try:
        made = work / "new"
        made.mkdir()
        yield made
        if held:
            os.rename(place, work / "old")
        os.rename(made, place)  # an empty directory gives way to it
    except BaseException as error:
        if (work / "old").exists():
            os.rename(work / "old", place)
        if _disk_is_full(error):
            raise UsageError(f"--output {place}: no space left on its disk") from None
        raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _disk_is_full(error: BaseException) -> bool:
    """Also as TensorFlow says it, which has no errno."""
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    return full or os.strerror(errno.ENOSPC) in str(error)
