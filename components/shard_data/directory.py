"""The output directory: it appears whole or not at all, and is never written over."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from components.shard_data.progress import Report
from components.shard_data.work import Work, write_text
from trainer.data.dataset import Dataset
from trainer.errors import UsageError

_LOCK = "lock"
_STATE = "state.json"
# Of renameat2: paths are those of this process, and what it does.
_HERE = -100
_RENAME_EXCHANGE = 2


def existing(output: str, source: dict[str, Any]) -> Dataset | None:
    """Returns the dataset of the same source and options that is there already.

    Raises:
      UsageError: something else is there.
    """
    if "://" in output:
        raise UsageError(f"--output {output}: write to a local directory and copy it from there")
    path = Path(output)
    with _as_usage_errors(output):
        if not os.path.lexists(path):
            return None
        if not path.is_dir():
            what = "a file" if path.exists() else "a link to nothing"
            raise UsageError(f"--output {output} is {what}: name a directory")
        if not any(path.iterdir()):
            return None
    other = f"--output {output} is not empty: choose another directory, or delete it"
    if not (path / "manifest.json").exists():
        raise UsageError(other)
    dataset = Dataset.open(output)
    if dataset.manifest.source != source:
        raise UsageError(f"{other} (it holds a dataset of another source or other options)")
    dataset.check_sizes(*dataset.manifest.splits)
    return dataset


@contextmanager
def alone(output: str) -> Iterator[Path]:
    """Gives a hidden place beside `output`, and holds a lock on it.

    The lock ends with the process, however that ends. The place stays where a run leaves something
    in it for the next one.

    Raises:
      UsageError: it cannot be written, or another run is at it.
    """
    target = _target(output)
    with _as_usage_errors(output):
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.parent / f".{target.name}.partial"
        partial.mkdir(exist_ok=True)
        with (partial / _LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"--output {output}: another run is writing it: wait for it, or stop it"
                ) from None
            try:
                yield partial
            finally:
                if partial.exists() and [entry.name for entry in partial.iterdir()] == [_LOCK]:
                    shutil.rmtree(partial)


@contextmanager
def working(partial: Path, state: dict[str, Any], report: Report) -> Iterator[tuple[Work, Path]]:
    """Gives a place to work in, and a directory in it for what is to become the output.

    A run that was killed leaves both; the next one goes on from what is there if it is to do the
    same (`state`), and removes it if not. A run that ends with an error removes it.
    """
    root = _taken_up(partial, json.dumps(state, sort_keys=True), report)
    try:
        yield Work(str(partial)), root
    except KeyboardInterrupt:
        report("stopped: the same command takes up what has been read so far")
        raise
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    shutil.rmtree(partial, ignore_errors=True)


def appear(root: Path, output: str, *, over: bool = False) -> None:
    """Makes a directory the output, whole and at once; `over`: in place of an older one."""
    target = _target(output)
    for path in root.rglob("*"):
        if path.is_file():
            _on_disk(path)
    if over:
        _exchange(root, target)
    else:
        root.rename(target)
    _on_disk(target.parent)


def _target(output: str) -> Path:
    """A link to a directory means that directory."""
    return Path(os.path.realpath(output))


def _exchange(one: Path, other: Path) -> None:
    """Gives each of two directories the other's name; nobody sees a moment in between."""
    libc = ctypes.CDLL(None, use_errno=True)
    names = (os.fsencode(one), os.fsencode(other))
    if libc.renameat2(_HERE, names[0], _HERE, names[1], _RENAME_EXCHANGE) == 0:
        return
    code = ctypes.get_errno()
    if code not in (errno.EINVAL, errno.ENOSYS):
        raise OSError(code, os.strerror(code))
    # A file system that cannot: two names one after the other.
    held = one.with_name("held")
    other.rename(held)
    one.rename(other)
    held.rename(one)


def _taken_up(partial: Path, state: str, report: Report) -> Path:
    """Empties the place, unless what is there is of the same run; returns the dataset's root."""
    described = partial / _STATE
    if described.exists() and described.read_text("utf-8") == state:
        report("going on from what an earlier run has read")
    else:
        for entry in partial.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            elif entry.name != _LOCK:
                entry.unlink()
        write_text(described, state)
    root = partial / "dataset"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    return root


def _on_disk(path: Path) -> None:
    """Waits for it: a machine that goes down must not leave a name without its bytes."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _as_usage_errors(output: str) -> Iterator[None]:
    """A place that cannot be written, or a disk that is full, is no fault of ours."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"--output {output}: {error.strerror or error}") from None
