"""A run whose --output is in an object store: the trainer works in a copy, this process copies.

The trainer itself is a child of this process and knows a local directory only. However it ends
(killed, out of memory, a lost peer), what it had written is in the store before this process leaves
with its exit code; a restart on any machine goes on from there. No TensorFlow here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NoReturn

from trainer import files
from trainer.cluster.crew import as_exit_code
from trainer.cluster.spec import ClusterSpec
from trainer.config import TrainConfig
from trainer.errors import EXIT_DONE, EXIT_FAULT, UsageError
from trainer.run.child import Started, stops_passed_on
from trainer.run.copy import STATUS, RunCopy, evaluators
from trainer.run.directory import COPIES_VARIABLE
from trainer.run.store import Store

# How old the store's view of a run may be; also what a killed machine loses beside its last steps.
_SECONDS_BETWEEN_COPIES = 5.0
# How often a run that says it runs is looked at again, and from when on its word is old.
_LOOKS = 2
_LONG_SILENT_SECONDS = 120.0
# Where Vertex AI looks for events of a custom job that has a TensorBoard.
_BOARD_VARIABLE = "AIP_TENSORBOARD_LOG_DIR"


def supervise(config: TrainConfig, spec: ClusterSpec, arguments: list[str]) -> int:
    """Runs `python -m trainer` with `arguments` on a copy of the run; returns its exit code.

    Raises:
      UsageError: the store cannot be read, or another process trains into it.
    """
    # From the first look to the last copy: a stop is the trainer's business alone.
    with stops_passed_on() as started:
        return _supervise(config, spec, arguments, started)


def _supervise(
    config: TrainConfig, spec: ClusterSpec, arguments: list[str], started: Started
) -> int:
    marks_best = config.eval_every is None
    is_evaluator = spec.role == "evaluator"
    local = tempfile.mkdtemp(prefix="castell-run-")
    try:
        store = Store(config.output)
        if spec.is_chief and _is_written(store, local):
            raise UsageError(
                f"--output {config.output}: another process is training into it: wait for it, stop "
                "it, or choose another --output"
            )
        copy = RunCopy(
            store,
            local,
            lambda name: evaluators(name, marks_best=marks_best) == is_evaluator,
        )
        copy.fetch(all_commits=spec.is_chief or is_evaluator)
        board = _board(local, is_evaluator)
    except files.read_errors(ValueError, ImportError) as error:
        shutil.rmtree(local, ignore_errors=True)
        _refuse(config.output, error)
    except BaseException:
        shutil.rmtree(local, ignore_errors=True)
        raise
    # The others write nothing that anybody needs.
    keeps = spec.is_chief or is_evaluator
    copies = (copy, *board)
    between = _Copying(copies, config.output) if keeps else None
    code = _run(arguments, {config.output: local}, between, started)
    if keeps and (why := _copied(copies)):
        print(
            f"castell: error: {config.output} could not be written ({why}): the run is kept in "
            f"{local} on this machine",
            file=sys.stderr,
            flush=True,
        )
        return code if code != EXIT_DONE else EXIT_FAULT
    shutil.rmtree(local, ignore_errors=True)
    return code


class _Copying:
    """Copies now and then; a store that is away is said once, and no reason to stop."""

    def __init__(self, copies: Sequence[RunCopy], url: str) -> None:
        self._copies = copies
        self._url = url
        self._away = False

    def __call__(self) -> None:
        why = _copied(self._copies)
        if why and not self._away:
            print(
                f"castell: warning: {self._url}: {why}; what is there stays, training goes on, "
                "and the next copy tries again",
                file=sys.stderr,
                flush=True,
            )
        elif self._away and not why:
            print(f"castell: {self._url} is written again", file=sys.stderr, flush=True)
        self._away = bool(why)


def _board(run: str, is_evaluator: bool) -> tuple[RunCopy, ...]:
    """Returns the copy of the event files that Vertex AI shows in its TensorBoard, if it does."""
    if not (url := os.environ.get(_BOARD_VARIABLE)):
        return ()

    def owns(name: str) -> bool:
        return evaluators(f"tensorboard/{name}", marks_best=False) == is_evaluator

    return (RunCopy(Store(url), os.path.join(run, "tensorboard"), owns),)


def _copied(copies: Sequence[RunCopy]) -> str | None:
    """Copies; returns why not, if it failed."""
    try:
        for copy in copies:
            copy.sync()
    except files.read_errors() as error:
        return files.reason(error)
    return None


def _is_written(store: Store, local: str) -> bool:
    """Whether a process that lives keeps a run in `store`.

    There are no locks there. A run that says it runs is watched for as long as its next word may
    take: who was killed says nothing more.
    """
    there = store.names().get(STATUS)
    if there is None:
        return False
    seen = os.path.join(local, STATUS)
    store.get(STATUS, seen)
    try:
        with open(seen, encoding="utf-8") as file:
            status = json.load(file)
        silent = datetime.now(UTC) - datetime.fromisoformat(status["updated"])
        if status["state"] != "running" or silent.total_seconds() > _LONG_SILENT_SECONDS:
            return False
    except (ValueError, KeyError, TypeError):
        return False  # damaged, so by nobody who is at work
    finally:
        os.unlink(seen)
    print("castell: the run there was running a moment ago: is it still?", file=sys.stderr)
    for _ in range(_LOOKS):
        time.sleep(_SECONDS_BETWEEN_COPIES)
        if store.names().get(STATUS) != there:
            return True
    return False


def _run(
    arguments: list[str], copies: dict[str, str], between: _Copying | None, started: Started
) -> int:
    """Runs the trainer to its end, copying meanwhile; returns its exit code."""
    command = [sys.executable, "-m", "trainer", *arguments]
    environment = {**os.environ, COPIES_VARIABLE: json.dumps(copies)}
    child = subprocess.Popen(command, env=environment)
    started(child)
    while True:
        try:
            return as_exit_code(child.wait(_SECONDS_BETWEEN_COPIES if between else None))
        except subprocess.TimeoutExpired:
            assert between is not None
            between()


def _refuse(url: str, error: Exception) -> NoReturn:
    if isinstance(error, FileNotFoundError):
        raise UsageError(f"--output {url}: no such bucket: make it first") from None
    raise UsageError(f"--output {url} cannot be read: {files.reason(error)}") from None
