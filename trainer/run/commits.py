"""Which checkpoints count: a `step-…` directory whose COMMIT.json vouches for every file in it.

COMMIT.json is written last and says what each data file must be (size, crc32c), what was saved and
under which circumstances. A directory without it, or whose files differ from it, is no checkpoint:
it is passed over, never repaired. This module needs no TensorFlow; `checkpoint` fills and reads the
data files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import google_crc32c

from trainer.errors import UsageError
from trainer.run import atomic

FORMAT_VERSION = 1
COMMIT_NAME = "COMMIT.json"
# Names of what is not (or no longer) a checkpoint; hidden, so that nothing takes it for one.
SAVING_PREFIX = ".saving-"
DISCARDED_PREFIX = ".discarded-"
_STEP_NAME = re.compile(r"step-(\d{8,})$")
_CHUNK_BYTES = 1 << 22


@dataclass(frozen=True)
class Commit:
    """A checkpoint that was whole when it was looked at.

    path: its directory. step: optimizer steps done. meta: what the saver added.
    """

    path: str
    step: int
    meta: dict[str, Any]

    @property
    def fingerprint(self) -> str:
        """sha256 over step, variables and checksums: equal for equal weights of a step."""
        content = read(self.path)
        identity = {key: content[key] for key in ("step", "variables", "files")}
        return hashlib.sha256(_canonical(identity)).hexdigest()


class NotWhole(Exception):
    """The directory is no checkpoint; the text says why."""


def step_name(step: int) -> str:
    """Returns the directory name of a step, sorted as the steps are."""
    return f"step-{step:08d}"


def steps_in(directory: str) -> list[int]:
    """Returns the steps of all `step-…` directories, whole or not, ascending."""
    try:
        names = os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []
    matches = (_STEP_NAME.match(name) for name in names)
    return sorted(int(match[1]) for match in matches if match)


def write(path: str, step: int, variables: dict[str, Any], meta: dict[str, Any]) -> Commit:
    """Writes COMMIT.json about the files that stand in `path`, the act that makes it count.

    Args:
      path: the checkpoint directory, its data files complete and on the disk.
      step: optimizer steps done.
      variables: name to {"shape", "dtype"} of what was saved.
      meta: JSON values of the saver.

    Raises:
      OSError: disk full; COMMIT.json is not there then.
    """
    files = {name: describe(os.path.join(path, name)) for name in sorted(os.listdir(path))}
    content: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "step": step,
        "files": files,
        "variables": variables,
        "meta": meta,
    }
    content["checksum"] = _checksum(content)
    atomic.write_json(os.path.join(path, COMMIT_NAME), content)
    atomic.sync_directory(path)
    return Commit(path, step, meta)


def read(path: str) -> dict[str, Any]:
    """Returns COMMIT.json of `path`, checked against its own checksum.

    Raises:
      NotWhole: it is missing, damaged, or of another format.
    """
    try:
        with open(os.path.join(path, COMMIT_NAME), "rb") as file:
            content = json.loads(file.read())
    except FileNotFoundError:
        raise NotWhole(f"{COMMIT_NAME} is missing") from None
    except OSError as error:
        raise NotWhole(f"{COMMIT_NAME}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise NotWhole(f"{COMMIT_NAME} is damaged") from None
    if not isinstance(content, dict) or content.pop("checksum", None) != _checksum(content):
        raise NotWhole(f"{COMMIT_NAME} is damaged")
    if content.get("format_version") != FORMAT_VERSION:
        raise NotWhole(f"format version {content.get('format_version')} is not {FORMAT_VERSION}")
    return content


def verify(path: str) -> Commit:
    """Returns the commit in `path` after reading every byte of it.

    Raises:
      NotWhole: naming what is missing, cut or altered.
    """
    content = read(path)
    if os.path.basename(path) != step_name(content["step"]):
        raise NotWhole(f"{COMMIT_NAME} is of step {content['step']}")
    for name, expected in content["files"].items():
        try:
            found = describe(os.path.join(path, name))
        except FileNotFoundError:
            raise NotWhole(f"{name} is missing") from None
        except OSError as error:
            raise NotWhole(f"{name}: {error.strerror}") from None
        if found["bytes"] != expected["bytes"]:
            raise NotWhole(f"{name} has {found['bytes']} bytes instead of {expected['bytes']}")
        if found["crc32c"] != expected["crc32c"]:
            raise NotWhole(f"{name} was altered (its checksum differs)")
    return Commit(path, content["step"], content["meta"])


def latest(directory: str, report: Callable[[str], None]) -> Commit | None:
    """Returns the newest whole checkpoint of `directory`, or None.

    Args:
      directory: the run's checkpoints; need not be there.
      report: gets one line for each newer one that is passed over.
    """
    for step in reversed(steps_in(directory)):
        path = os.path.join(directory, step_name(step))
        try:
            return verify(path)
        except NotWhole as reason:
            report(f"checkpoint {path} is skipped: {reason}")
    return None


def commit_at(directory: str, step: int) -> Commit:
    """Returns the whole checkpoint of `step`.

    Raises:
      UsageError: it is not there (the steps that are there are listed) or not whole.
    """
    if step not in (there := steps_in(directory)):
        listed = ", ".join(map(str, there)) or "none"
        raise UsageError(f"no checkpoint of step {step} in {directory}; there: {listed}")
    path = os.path.join(directory, step_name(step))
    try:
        return verify(path)
    except NotWhole as reason:
        others = ", ".join(str(s) for s in there if s != step) or "none"
        raise UsageError(f"checkpoint {path} is not whole: {reason}; others: {others}") from None


def prune(directory: str, step: int, keep: int, spared: Collection[int] = ()) -> None:
    """Deletes what the checkpoint just written at `step` makes superfluous.

    That is all but the newest `keep` commits up to `step` and those of the steps `spared`,
    directories without COMMIT.json, and leftovers. Later steps (damaged ones, passed over at the
    start) neither count nor are touched: the run replaces them when it comes there. An error is no
    reason to stop: the next save tries again.
    """
    committed: list[int] = []
    for there in steps_in(directory):
        path = os.path.join(directory, step_name(there))
        if not os.path.exists(os.path.join(path, COMMIT_NAME)):
            discard(path)
        elif there <= step:
            committed.append(there)
    for there in committed[:-keep]:
        if there not in spared:
            discard(os.path.join(directory, step_name(there)))
    with contextlib.suppress(OSError):
        for name in os.listdir(directory):
            if name.startswith((SAVING_PREFIX, DISCARDED_PREFIX)):
                shutil.rmtree(os.path.join(directory, name), ignore_errors=True)


def discard(path: str) -> None:
    """Deletes a directory; renamed first, so that no reader finds half of it."""
    directory, name = os.path.split(path)
    hidden = os.path.join(directory, DISCARDED_PREFIX + name)
    shutil.rmtree(hidden, ignore_errors=True)
    try:
        os.rename(path, hidden)
    except OSError:
        hidden = path
    shutil.rmtree(hidden, ignore_errors=True)


def describe(path: str) -> dict[str, Any]:
    """Returns {"bytes", "crc32c"} (eight hexadecimal digits) of a file."""
    crc, size = 0, 0
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            crc = google_crc32c.extend(crc, chunk)
            size += len(chunk)
    return {"bytes": size, "crc32c": f"{crc:08x}"}


def _canonical(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True).encode()


def _checksum(content: dict[str, Any]) -> str:
    """Guards COMMIT.json itself, whose figures guard the other files."""
    return f"{google_crc32c.value(_canonical(content)):08x}"
