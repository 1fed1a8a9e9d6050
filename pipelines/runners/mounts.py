"""What of this machine the containers of a run see: the tables among the pipeline's sources.

Each stands where it is here. A directory is mounted as it is; of a glob, the files that match: the
directory around them may be one that the container has itself, such as /tmp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from fsspec.core import url_to_fs

from components.shard_data import inputs
from trainer.errors import UsageError
from trainer.files import join

# Without its own ones a container does not start, or its programs find nothing.
_THE_IMAGES_OWN = {
    "/", "/bin", "/dev", "/etc", "/lib", "/lib64", "/opt", "/proc", "/run", "/sbin", "/sys", "/tmp",
    "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/var", "/var/tmp",
}  # fmt: skip


def mounted(sources: Sequence[str]) -> list[str]:
    """Returns the absolute paths of this machine that the sources mean, sorted, none twice.

    Raises:
      UsageError: a source is not there, or is a directory that a container has itself.
    """
    return sorted({path for source in sources if _is_local(source) for path in _paths(source)})


def _is_local(source: str) -> bool:
    return "://" not in source or source.startswith(("file://", "local://"))


def _paths(source: str) -> Iterator[str]:
    path = url_to_fs(source)[1] if source.strip() else ""
    if not Path(path).is_dir() or not path:
        for file in inputs.find([source]):
            paths = [join(file.path, name) for name in file.images] or [file.path]
            yield from (url_to_fs(path)[1] for path in paths)
    elif str(Path(path).resolve()) in _THE_IMAGES_OWN or path in _THE_IMAGES_OWN:
        raise UsageError(
            f"source {source}: containers have a {path} of their own: name a directory below it, "
            "or the files by a glob"
        )
    else:
        yield path
