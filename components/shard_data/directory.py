"""The output directory: it appears whole or not at all, and is never written over."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainer.data.dataset import Dataset
from trainer.errors import UsageError


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
def appearing(output: str) -> Iterator[Path]:
    """Gives a hidden directory beside `output` that becomes it at the end, or is removed."""
    target = Path(output).absolute()
    with _as_usage_errors(output):
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.partial-", dir=target.parent))
        try:
            yield partial
            mask = os.umask(0)
            os.umask(mask)
            partial.chmod(0o777 & ~mask)
            partial.rename(target)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


@contextmanager
def _as_usage_errors(output: str) -> Iterator[None]:
    """A place that cannot be written, or a disk that is full, is no fault of ours."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"--output {output}: {error.strerror or error}") from None
