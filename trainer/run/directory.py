"""The run directory: what `--output` names, and which configuration may go on in it.

A run is identified by its config.json. Another start in the same directory resumes the run if every
key that decides the weights is equal, and is refused otherwise. Checkpoints, status and metrics
have their own modules; here are the names, the configuration and the copy of the data description.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from typing import Any

from trainer.data.dataset import Dataset
from trainer.data.manifest import Manifest
from trainer.errors import UsageError
from trainer.run import atomic, commits
from trainer.run.differences import differences
from trainer.run.store import SCHEMES, scheme_of

# Set for the trainer by who copies (`supervise`): URL -> the directory to work in, as JSON.
COPIES_VARIABLE = "CASTELL_RUN_COPIES"

# What may stand in a directory that is not a run yet (and empty `checkpoints`): the launcher opens
# logs, and a start that failed writes its status, before the configuration is written.
_BEFORE_CONFIG = frozenset({"logs", "status.json"})
# A killed predecessor may take a moment to be gone.
_LOCK_SECONDS = 5.0


class RunDirectory:
    """Names and configuration of one run; creating the object touches nothing.

    Raises:
      UsageError: the path is a URL of which there is no copy here.
    """

    def __init__(self, path: str) -> None:
        self.path = _local(path)
        self._lock: int | None = None

    @property
    def checkpoints(self) -> str:
        """The directory of `step-…` directories."""
        return os.path.join(self.path, "checkpoints")

    @property
    def logs(self) -> str:
        """The directory of the workers' outputs."""
        return os.path.join(self.path, "logs")

    @property
    def dataset(self) -> str:
        """The copy of the dataset's description that the run was trained with."""
        return os.path.join(self.path, "dataset")

    @property
    def status(self) -> str:
        """The file that says how the run is doing."""
        return os.path.join(self.path, "status.json")

    @property
    def metrics(self) -> str:
        """The file of metric lines."""
        return os.path.join(self.path, "metrics.jsonl")

    @property
    def tensorboard(self) -> str:
        """The directory of event files."""
        return os.path.join(self.path, "tensorboard")

    @property
    def _config(self) -> str:
        return os.path.join(self.path, "config.json")

    def entries(self) -> list[str]:
        """Returns the names in the directory, none if it is not there yet.

        Raises:
          UsageError: there is something else, or it cannot be read.
        """
        try:
            return os.listdir(self.path)
        except FileNotFoundError:
            return []
        except NotADirectoryError:
            raise UsageError(
                f"--output {self.path} is a file or lies under one: name a directory"
            ) from None
        except OSError as error:
            raise UsageError(f"--output {self.path}: {error.strerror}") from None

    def check(self, config: dict[str, Any], resumable: frozenset[str]) -> None:
        """Refuses a directory in which `config` cannot start or resume; writes nothing.

        Args:
          config: the resolved configuration, JSON values.
          resumable: top-level keys that may differ between a run and its resumption.

        Raises:
          UsageError: another configuration's run, not a run directory, or not a directory.
        """
        entries = self.entries()
        if "config.json" in entries:
            self._check_same(config, resumable)
            return
        known = _BEFORE_CONFIG | (set() if self._has_checkpoints() else {"checkpoints"})
        foreign = sorted(name for name in entries if name not in known and name[-4:] != ".tmp")
        if foreign:
            raise UsageError(
                f"--output {self.path} is not a run directory (it holds {foreign[0]!r} and no "
                "config.json): choose a new or empty directory"
            )

    def _check_same(self, config: dict[str, Any], resumable: frozenset[str]) -> None:
        if not self._has_checkpoints():
            return
        differing = [
            f"{difference} now"
            for difference in differences(self.read_config(), config)
            if difference.key.partition(".")[0] not in resumable
        ]
        if differing:
            raise UsageError(
                f"--output {self.path} holds a run of another configuration: "
                f"{', '.join(differing)}; use the same values to resume it, or choose another "
                "--output"
            )

    def lock(self) -> None:
        """Keeps other chiefs out of the directory until this process ends; only the chief does.

        Nothing happens where there is no directory yet (`start` locks it then), or no locks, as on
        some network disks.

        Raises:
          UsageError: another process has held it for longer than a restart takes.
        """
        if self._lock is not None or not os.path.isdir(self.path):
            return
        descriptor = os.open(self.path, os.O_RDONLY)
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < deadline:
                    time.sleep(0.1)
                    continue
                os.close(descriptor)
                raise UsageError(
                    f"--output {self.path}: another process is training into it: wait for it, "
                    "stop it, or choose another --output"
                ) from None
            except OSError:
                os.close(descriptor)
                return
            self._lock = descriptor
            return

    def start(self, config: dict[str, Any], resumable: frozenset[str]) -> None:
        """Creates the directory and writes config.json; only the chief does.

        Raises:
          UsageError: as `check`, or the directory cannot be written; then nothing new remains.
        """
        self.check(config, resumable)
        created: list[str] = []
        try:
            created.extend(_make_directories(self.path))
            self.lock()
            for path in (self.checkpoints, self.logs):
                created.extend(_make_directories(path))
            atomic.write_json(self._config, config)
        except OSError as error:
            for path in reversed(created):
                with contextlib.suppress(OSError):
                    os.rmdir(path)
            raise UsageError(
                f"--output {self.path} cannot be written ({error.strerror}): name a directory "
                "with space where you may write"
            ) from None

    def read_config(self) -> dict[str, Any]:
        """Returns config.json.

        Raises:
          UsageError: there is none, or it is not readable.
        """
        try:
            with open(self._config, encoding="utf-8") as file:
                config = json.load(file)
        except (FileNotFoundError, NotADirectoryError):
            raise UsageError(
                f"{self.path} is not a run directory (no config.json): name the --output of a "
                "training run"
            ) from None
        except OSError as error:
            raise UsageError(f"{self._config}: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{self._config} is damaged ({error}): choose another run") from None
        if not isinstance(config, dict):
            raise UsageError(f"{self._config} is damaged (not a mapping): choose another run")
        return config

    def check_dataset(self, dataset: Dataset) -> None:
        """Refuses data of other content than the run was trained with; writes nothing.

        The dataset may have moved; what counts is the fingerprint.

        Raises:
          UsageError: the run's copy of the manifest has another fingerprint.
        """
        if not self._has_checkpoints():
            return
        try:
            with open(os.path.join(self.dataset, "manifest.json"), encoding="utf-8") as file:
                kept = Manifest.model_validate_json(file.read())
        except (OSError, ValueError):
            return  # Not there yet, or damaged: `keep_dataset` writes it.
        if kept.fingerprint != dataset.manifest.fingerprint:
            raise UsageError(
                f"{dataset.path} is not the data that the run in {self.path} was trained with "
                f"(fingerprint {dataset.manifest.fingerprint[:12]}, there "
                f"{kept.fingerprint[:12]}): give the same data to resume it, or choose another "
                "--output"
            )

    def _has_checkpoints(self) -> bool:
        """A run that kept nothing (its Task failed, say) binds nobody to its configuration."""
        return bool(commits.steps_in(self.checkpoints))

    def keep_dataset(self, dataset: Dataset) -> None:
        """Copies manifest.json and statistics.json to <run>/dataset, as they were opened.

        Evaluation and export need the columns and figures that the model was built with, even
        when the data has moved.

        Raises:
          UsageError: as `check_dataset`, or the files cannot be written.
        """
        self.check_dataset(dataset)
        try:
            os.makedirs(self.dataset, exist_ok=True)
            # The manifest last, as in every dataset directory: it means "whole".
            for name, content in (
                ("statistics.json", dataset.statistics),
                ("manifest.json", dataset.manifest),
            ):
                text = content.model_dump_json(indent=1)
                atomic.write(os.path.join(self.dataset, name), text.encode())
        except OSError as error:
            raise UsageError(f"{self.dataset} cannot be written: {error.strerror}") from None


def is_elsewhere(path: str) -> bool:
    """Whether `path` is in a store, and this process has no copy of it to work in."""
    return scheme_of(path) in SCHEMES and path not in _copies()


def _copies() -> dict[str, str]:
    """Returns the local directories that stand for URLs in this process."""
    return dict(json.loads(os.environ.get(COPIES_VARIABLE, "{}")))


def _local(path: str) -> str:
    """Returns the file name behind `path`, absolute: forked workers may change directory."""
    if copy := _copies().get(path):
        return copy
    scheme = scheme_of(path)
    if scheme in SCHEMES:
        raise UsageError(f"{path}: only training works in a store: copy the run to a disk first")
    if scheme not in (None, "file"):
        raise UsageError(
            f"--output {path}: a run directory is on a local or mounted disk, or in "
            f"{' or '.join(f'{s}://' for s in SCHEMES[::2])}, not in {scheme}://"
        )
    if scheme:
        path = path.partition("://")[2].removeprefix("localhost")
    if not path:
        raise UsageError("--output is empty: name a directory")
    return os.path.abspath(path)


def _make_directories(path: str) -> list[str]:
    """Creates `path` with its parents; returns those that were missing, outermost first."""
    missing: list[str] = []
    parent = path
    while not os.path.lexists(parent):
        missing.insert(0, parent)
        parent = os.path.dirname(parent)
    os.makedirs(path, exist_ok=True)
    return missing
