"""The ops of a traced step, in whatever function they stand, and the user's line behind each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

import trainer
from trainer.task import Task

_TRAINER = os.path.dirname(trainer.__file__)
# Frames of these are on the way to a user's code, not it. (`trainer/tasks` counts as a user's.)
_OURS = tuple(
    os.path.join(_TRAINER, name) for name in ("loop/", "check/", "task.py", "build.py", "worker.py")
)
_LIBRARIES = tuple(os.path.dirname(module.__file__) + os.sep for module in (tf, keras))


def operations(graph: Any) -> Iterator[Any]:
    """Yields the ops of a FuncGraph and of all functions in it (branches, loop bodies, calls)."""
    seen: set[str] = set()
    waiting = [graph]
    while waiting:
        one = waiting.pop()
        yield from one.get_operations()
        # No public name: `graph.as_graph_def().library` has the ops, but not where they come from.
        for name, function in one._functions.items():
            if name not in seen:
                seen.add(name)
                waiting.append(function.graph)


def is_ours(op: Any) -> bool:
    """Whether the loop itself made `op`."""
    frames = [frame for frame in op.traceback if not frame.filename.startswith(_LIBRARIES[0])]
    return bool(frames) and frames[-1].filename.startswith(_OURS)


def origin(op: Any, task: Task) -> str | None:
    """Returns the user's line that made `op`, as "Churn.loss (churn.py:24)"; None if no user's did.

    An op of a helper names both: "Churn.loss, squash (nets.py:7)".
    """
    frames = [f for f in op.traceback if not f.filename.startswith((*_LIBRARIES, *_OURS))]
    # Above the loop stands whoever started it.
    started = next(
        (n for n, f in enumerate(op.traceback) if f.filename.startswith(_OURS)), len(op.traceback)
    )
    before = set(map(_key, list(op.traceback)[:started]))
    frames = [frame for frame in frames if _key(frame) not in before]
    if not frames:
        return None
    first, last = frames[0], frames[-1]
    named = first.name if not hasattr(task, first.name) else f"{type(task).__name__}.{first.name}"
    helper = f", {last.name}" if last.name not in (first.name, "<lambda>") else ""
    return f"{named}{helper} ({_short(last.filename)}:{last.lineno})"


def _key(frame: Any) -> tuple[str, int]:
    return frame.filename, frame.lineno


def _short(path: str) -> str:
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path
