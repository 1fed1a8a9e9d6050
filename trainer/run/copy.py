"""A run in an object store: worked on in a local copy, which is kept in step with the store.

Renames and appends, which commits and metrics live by, are not to be had in a store. So every
process works in a directory of its own: filled from the store before it starts, and compared with
it every few seconds. What counts is kept in order there, too: the files of a checkpoint come before
its COMMIT.json, and go after it.

Each file has one owner, who alone writes it: the chief's are all but those of an evaluator.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress

from trainer.run import commits, marks
from trainer.run.store import Store

_CHECKPOINTS = "checkpoints"
_BEST = f"{_CHECKPOINTS}/{marks.NAME}"
STATUS = "status.json"
_STEP = re.compile(rf"({_CHECKPOINTS}/step-\d+)/")
_EVALUATORS = re.compile(r"evaluations\.jsonl$|tensorboard/[^/]+_evaluator/")
_Stamp = tuple[int, int]


def evaluators(name: str, *, marks_best: bool) -> bool:
    """Whether a file of a run is the evaluator's. marks_best: best.json is, too."""
    return bool(_EVALUATORS.match(name)) or (marks_best and name == _BEST)


class RunCopy:
    """The directory `path`, and what the store has of it.

    owns: whether this process writes a file; any other one is only taken from the store.
    """

    def __init__(self, store: Store, path: str, owns: Callable[[str], bool]) -> None:
        self._store = store
        self._path = path
        self._owns = owns
        # Of what the store has: the local file it equals, and the version that was taken.
        self._equal: dict[str, _Stamp | None] = {}
        self._taken: dict[str, object] = {}

    def fetch(self, *, all_commits: bool) -> None:
        """Fills the empty directory. all_commits: False: no older than the newest whole one."""
        there = self._store.names()
        self._equal = dict.fromkeys(there)
        steps, others = _by_step(there)
        for name in others:
            self._take(name, there)
        for step in sorted(steps, reverse=True):
            self._take_step(steps[step], there)
            with suppress(commits.NotWhole):
                commits.verify(os.path.join(self._path, step))
                if not all_commits:
                    return

    def sync(self) -> None:
        """Takes what others have written, and gives what this process has."""
        self._pull()
        self._push()

    def _pull(self) -> None:
        there = self._store.names()
        wanted = [n for n in there if not self._owns(n) and self._taken.get(n) != there[n]]
        steps, others = _by_step(wanted)
        # The status last: who reads that a run has ended looks for nothing more.
        for step in sorted(steps):
            self._take_step(steps[step], there)
        for name in sorted(others, key=lambda name: (name == STATUS, name)):
            self._take(name, there)
        for step in _by_step(self._here())[0]:
            if not self._owns(f"{step}/") and f"{step}/{commits.COMMIT_NAME}" not in there:
                commits.discard(os.path.join(self._path, step))

    def _push(self) -> None:
        here = {name: stamp for name, stamp in self._here().items() if self._owns(name)}
        steps, others = _by_step(here)
        theirs, _ = _by_step(name for name in self._equal if self._owns(name))
        # A checkpoint comes after the figures that led to it: who resumes from it has them. What
        # names a checkpoint, or says that all is there, comes after that.
        after = [name for name in (_BEST, STATUS) if name in others]
        self._give_all([name for name in sorted(others) if name not in after], here)
        for step in sorted({*steps, *theirs}):
            # Pruned while it was copied: the next round removes what has come of it.
            with suppress(FileNotFoundError):
                self._push_step(step, steps.get(step, []), theirs.get(step, []), here)
        self._give_all(after, here)

    def _give_all(self, names: Iterable[str], here: dict[str, _Stamp]) -> None:
        for name in names:
            with suppress(FileNotFoundError):
                self._give(name, here[name])

    def _push_step(
        self, step: str, mine: list[str], theirs: list[str], here: dict[str, _Stamp]
    ) -> None:
        commit = f"{step}/{commits.COMMIT_NAME}"
        if commit not in mine:
            mine = []
        if all(self._equal.get(name) == here[name] for name in mine) and set(mine) == set(theirs):
            return
        # Whatever differs: until all of it is there, it is no checkpoint.
        for name in sorted(theirs, key=lambda name: (name != commit, name)):
            if name == commit or name not in mine:
                self._store.remove(name)
                del self._equal[name]
        for name in sorted(mine, key=lambda name: (name == commit, name)):
            self._give(name, here[name])

    def _give(self, name: str, stamp: _Stamp) -> None:
        if self._equal.get(name) != stamp:
            self._store.put(os.path.join(self._path, name), name)
            self._equal[name] = stamp

    def _take_step(self, names: list[str], there: dict[str, object]) -> None:
        for name in sorted(names, key=lambda name: name.endswith(commits.COMMIT_NAME)):
            self._take(name, there)

    def _take(self, name: str, there: dict[str, object]) -> None:
        path = os.path.join(self._path, name)
        part = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.part")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with suppress(FileNotFoundError):  # removed since it was listed
            self._store.get(name, part)
            os.replace(part, path)
            self._taken[name] = there[name]
            self._equal[name] = _stamp(os.stat(path))

    def _here(self) -> dict[str, _Stamp]:
        """Returns the files of the directory; hidden ones are not finished."""
        found: dict[str, _Stamp] = {}
        for directory, folders, names in os.walk(self._path):
            folders[:] = [folder for folder in folders if not folder.startswith(".")]
            for name in names:
                path = os.path.join(directory, name)
                with suppress(FileNotFoundError):
                    if not name.startswith("."):
                        found[os.path.relpath(path, self._path)] = _stamp(os.stat(path))
        return found


def _stamp(found: os.stat_result) -> _Stamp:
    return found.st_mtime_ns, found.st_size


def _by_step(names: Iterable[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Returns the files of each checkpoint, by its directory, and the others."""
    steps: dict[str, list[str]] = {}
    others: list[str] = []
    for name in names:
        if found := _STEP.match(name):
            steps.setdefault(found[1], []).append(name)
        else:
            others.append(name)
    return steps, others
