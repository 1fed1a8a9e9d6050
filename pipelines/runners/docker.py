"""Steps as containers of their image, through the Docker engine.

The engine sees what is mounted alone: the directory of the artifacts, as kfp.local does it, and
here the local files among the sources, read-only, where they are on this machine. Containers run as
this user, so that what they write is this user's.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trainer.errors import UsageError

_LABEL = "castell.run"
# Time for a checkpoint before a stop.
_GRACE_SECONDS = 60


class Docker:
    """kfp.local's DockerRunner, with a label by which the containers are found again."""

    def __init__(self, sources: list[str]) -> None:
        self._sources = sources
        self._run = uuid.uuid4().hex
        self._client = _client()

    def make(self) -> Any:
        """See `Runner`."""
        from docker.types import Mount
        from kfp import local

        return local.DockerRunner(
            # The image's own entry point is the trainer; a step brings its whole command.
            entrypoint=["tini", "--"],
            user=f"{os.getuid()}:{os.getgid()}",
            # That user has no home in the image.
            environment={"HOME": "/tmp"},
            working_dir=os.getcwd(),
            labels={_LABEL: self._run},
            mounts=[
                Mount(target=path, source=path, type="bind", read_only=True)
                for path in sorted(set(_mounted(self._sources)))
            ],
        )

    def stop(self) -> bool:
        """See `Runner`."""
        running = self._containers()
        for container in running:
            container.kill("SIGTERM")
        return bool(running)

    def close(self) -> None:
        """See `Runner`."""
        with contextlib.closing(self._client):
            for container in self._containers():
                container.stop(timeout=_GRACE_SECONDS)

    def _containers(self) -> list[Any]:
        found: list[Any] = self._client.containers.list(filters={"label": f"{_LABEL}={self._run}"})
        return found


def runner(arguments: Mapping[str, Any]) -> Docker:
    """Returns the runner.

    Raises:
      UsageError: no engine answers.
    """
    return Docker([str(source) for source in arguments.get("sources", ())])


def _client() -> Any:
    import docker
    from docker.errors import DockerException

    try:
        client = docker.from_env()
        client.ping()
    except DockerException as error:
        raise UsageError(
            f"--runner docker: no Docker engine answers ({error}): start it, or take "
            "--runner subprocess"
        ) from None
    return client


def _mounted(sources: list[str]) -> Iterator[str]:
    """Yields the existing local path that each source needs; of a glob, the part before it."""
    for source in sources:
        if "://" in source:
            continue
        path = Path(source).absolute()
        while not path.exists():
            path = path.parent
        yield str(path)
