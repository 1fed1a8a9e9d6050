"""Steps as containers of their image, through the Docker engine.

The engine sees what is mounted alone: the directory of the artifacts, as kfp.local does it, and
here the tables (`pipelines.runners.mounts`), read-only. Containers run as this user, so that what
they write is this user's.

kfp.local's own way to run a container loses its exit code, may call a failure a success
(kubeflow/pipelines#13332), and leaves a container behind if it is stopped at the start: `Docker`
takes the place of that one function.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException, ImageNotFound

from pipelines.runners.mounts import mounted
from trainer.errors import UsageError

_RUN = "castell.run"
_WORKDIR = "castell.workdir"
_PROCESS = "castell.process"
# Time for a checkpoint before a stop.
_GRACE_SECONDS = 60
# What `docker run` leaves with when the engine cannot start the container.
_NOT_STARTED = 125
_SIGNALS_FROM = 128
_MEANINGS = {
    137: "killed: by hand, or for want of memory",
    139: "crashed (segmentation fault)",
    143: "stopped from outside",
}
# The client passes on those of requests, which are OSErrors.
_ENGINE_FAULTS = (DockerException, OSError)
# Parameters of a pipeline that may name a directory of this machine, beside its sources.
_DIRECTORIES = ("baseline", "baseline_run")


class Docker:
    """kfp.local's DockerRunner, its containers labelled with the run, its workdir and process."""

    def __init__(self, sources: Sequence[str], images: Iterable[str], workdir: Path) -> None:
        self._mounts = mounted(sources)
        self._client = _client()
        for image in images:
            _find(self._client, image)
        _end_left_over(self._client, workdir)
        self._labels = {
            _RUN: uuid.uuid4().hex, _WORKDIR: str(workdir), _PROCESS: _process(os.getpid())
        }  # fmt: skip
        self._told = False
        # From before a container is there until it is removed.
        self._in_step = False
        self._running = ""
        self._undo = contextlib.ExitStack()

    def make(self) -> Any:
        """See `Runner`."""
        from docker.types import Mount
        from kfp import local
        from kfp.local import docker_task_handler as kfps

        self._undo.callback(setattr, kfps, "run_docker_container", kfps.run_docker_container)
        kfps.run_docker_container = self._run
        return local.DockerRunner(
            # The image's own entry point is the trainer; a step brings its whole command.
            entrypoint=["tini", "--"],
            user=f"{os.getuid()}:{os.getgid()}",
            # That user has no home in the image.
            environment={"HOME": "/tmp"},
            working_dir=os.getcwd(),
            labels=self._labels,
            mounts=[
                Mount(target=path, source=path, type="bind", read_only=True)
                for path in self._mounts
            ],
        )

    def stop(self) -> bool:
        """See `Runner`; a thread tells the step, since this one may be inside a client."""
        self._told = True
        if self._running:
            threading.Thread(target=self._terminate, args=(self._running,), daemon=True).start()
        return self._in_step

    def close(self) -> None:
        """See `Runner`."""
        self._undo.close()
        with contextlib.closing(self._client), contextlib.suppress(*_ENGINE_FAULTS):
            for container in _labelled(self._client, _RUN, self._labels[_RUN]):
                _end(container)

    def _run(
        self, client: Any, image: str, command: list[str], volumes: Mapping[str, Any], **more: Any
    ) -> int:
        """Runs a step's container and returns its exit code; says so if others have ended it."""
        self._in_step = True
        if self._told:
            raise KeyboardInterrupt
        container = None
        try:
            container = client.containers.create(image, command, volumes=volumes, **more)
            container.start()
            self._running = container.id
            if self._told:  # by a signal that came before there was anything to stop
                self._terminate(container.id)
            for line in _lines(container.logs(stream=True, follow=True)):
                print(line)
            code = int(container.wait()["StatusCode"])
            if code > _SIGNALS_FROM and not self._told:
                container.reload()
                print(_ended(code, out_of_memory=container.attrs["State"]["OOMKilled"]))
        except _ENGINE_FAULTS as error:
            print(f"castell: error: the Docker engine fails: {_said(error)}")
            return _NOT_STARTED
        finally:
            self._running = ""
            if container is not None:
                with contextlib.suppress(*_ENGINE_FAULTS):
                    container.remove(force=True)
            self._in_step = False
        return code

    def _terminate(self, container_id: str) -> None:
        with contextlib.suppress(*_ENGINE_FAULTS):  # it has ended by itself
            container = self._client.containers.get(container_id)
            # To tini alone a signal may come before it listens, and be lost.
            while len(container.top()["Processes"]) < 2:
                time.sleep(0.05)
            container.kill("SIGTERM")


def runner(arguments: Mapping[str, Any], images: Iterable[str], workdir: Path) -> Docker:
    """Returns the runner; ends what a killed run has left on the same workdir.

    Raises:
      UsageError: no engine answers, an image is not to be had, or a source is not there.
    """
    given = [*arguments.get("sources", ()), *(arguments.get(name) for name in _DIRECTORIES)]
    return Docker([str(path) for path in given if path], images, workdir)


def _find(client: Any, image: str) -> None:
    try:
        try:
            client.images.get(image)
        except ImageNotFound:
            client.images.pull(image)
    except DockerException as error:
        raise UsageError(
            f"image {image} is neither here nor to be pulled ({_said(error)}): `make image` builds "
            "it, --image names another"
        ) from None


def _client() -> Any:
    try:
        client = docker.from_env()
        client.ping()
    except DockerException as error:
        raise UsageError(
            f"--runner docker: no Docker engine answers ({error}): start it, or take "
            "--runner subprocess"
        ) from None
    return client


def _said(error: Exception) -> str:
    return str(error.explanation if isinstance(error, APIError) and error.explanation else error)


def _labelled(client: Any, label: str, value: str) -> list[Any]:
    """Returns the containers with a label, those too that have ended or not begun."""
    filters = {"label": f"{label}={value}"}
    found: list[Any] = client.containers.list(all=True, filters=filters, ignore_removed=True)
    return found


def _end(container: Any) -> None:
    container.stop(timeout=_GRACE_SECONDS)
    container.remove(force=True)


def _end_left_over(client: Any, workdir: Path) -> None:
    """Ends containers of runs on `workdir` whose process was killed."""
    for container in _labelled(client, _WORKDIR, str(workdir)):
        process = container.labels[_PROCESS]
        host, pid, _ = process.rsplit(":", 2)
        # What lives on another machine of this engine is not to be known.
        if host != socket.gethostname() or _process(int(pid)) == process:
            continue
        print(
            f"castell: ending container {container.name}, which a killed run (process {pid}) has "
            f"left on {workdir}", file=sys.stderr, flush=True,
        )  # fmt: skip
        with contextlib.suppress(*_ENGINE_FAULTS):  # it has gone meanwhile
            _end(container)


def _process(pid: int) -> str:
    """Returns a process's host, id and start; an id alone may be another one's by now."""
    start = "gone"
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, 0)
        start = ""
        with contextlib.suppress(OSError):  # Linux has it
            start = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    return f"{socket.gethostname()}:{pid}:{start}"


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Yields whole lines, as they come."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    rest = ""
    for chunk in chunks:
        *lines, rest = (rest + decoder.decode(chunk)).split("\n")
        yield from lines
    if rest:
        yield rest


def _ended(code: int, *, out_of_memory: bool) -> str:
    meaning = _MEANINGS.get(code, f"signal {code - _SIGNALS_FROM}")
    if out_of_memory:
        meaning = "killed: it ran out of memory"
    return f"its container ended with exit code {code}: {meaning}"
