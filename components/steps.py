"""What the KFP faces of all steps share: where an artifact is, whole numbers, and how a step ends.

A face (`component.py`) only names inputs and outputs; its `step.py` calls the work and describes
the artifacts. No kfp here: an artifact is whatever has `uri`, `path` and `metadata`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from trainer.config import explain
from trainer.errors import EXIT_USAGE, CastellError
from trainer.run.faults import stop_raises


class Artifact(Protocol):
    """The part of a KFP artifact that steps use."""

    uri: str
    path: str
    metadata: dict[str, Any]


def location(artifact: Artifact) -> str:
    """Returns where to read or write: gs:// itself, else the path that the launcher provides.

    `path` of a gs:// artifact is a FUSE mount, which starves training and may be missing; other
    object stores (s3, minio) are copied to and from `path` by the launcher.
    """
    return artifact.uri if artifact.uri.startswith("gs://") else artifact.path


@contextmanager
def local_output(artifact: Artifact) -> Iterator[str]:
    """Yields a local path for a file or a directory; gs:// is filled from it at the end."""
    target = location(artifact)
    if target == artifact.path:
        yield target
        return
    import fsspec

    with tempfile.TemporaryDirectory() as directory:
        part = str(Path(directory, Path(target).name))
        yield part
        filesystem, name = fsspec.core.url_to_fs(target)
        filesystem.put(part, name, recursive=True)


def whole_numbers(value: Any) -> Any:
    """Undoes what KFP does to numbers inside lists and mappings: 256 arrives as 256.0."""
    if isinstance(value, dict):
        return {key: whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole_numbers(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


@contextmanager
def local_input(artifact: Artifact) -> Iterator[str]:
    """Yields a local path of a directory; one in gs:// is copied for the time being.

    For what is small and read by path (a run); a data set is read where it is.
    """
    source = location(artifact)
    if source == artifact.path:
        yield source
        return
    import fsspec

    with tempfile.TemporaryDirectory() as directory:
        part = str(Path(directory, Path(source).name))
        filesystem, name = fsspec.core.url_to_fs(source)
        filesystem.get(name, part, recursive=True)
        yield part


@contextmanager
def one_line_ends() -> Iterator[None]:
    """Ends the step's process with the error's own line and exit code, without a traceback."""
    try:
        with stop_raises():
            yield
    except ValidationError as error:  # of the step's options: what its parameters hold
        print(f"castell: error: {explain(error)}", file=sys.stderr, flush=True)
        sys.exit(EXIT_USAGE)
    except CastellError as error:
        print(f"castell: error: {error}", file=sys.stderr, flush=True)
        sys.exit(error.exit_code)
