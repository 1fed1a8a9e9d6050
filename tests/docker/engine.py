"""Containers for tests, through Docker's own client: bounded waits, nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TRAINER = "castell-trainer:0.1.0"
CASTELL = "castell:0.1.0"
PATIENCE = 120.0


def docker(*words: str, timeout: float = PATIENCE) -> str:
    done = subprocess.run(
        ["docker", *words], capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, f"docker {' '.join(words)}:\n{done.stdout}{done.stderr}"
    return done.stdout.strip()


class Container:
    """One that runs in the background."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def output(self) -> str:
        done = subprocess.run(
            ["docker", "logs", self.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=30, check=False,
        )  # fmt: skip
        return done.stdout

    def inspect(self) -> dict[str, Any]:
        (found,) = json.loads(docker("inspect", self.name))
        return dict(found)

    def wait_for(self, condition: Callable[[], bool], timeout: float = PATIENCE) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            assert self.inspect()["State"]["Running"], f"ended:\n{self.output}"
            assert time.monotonic() < deadline, f"nothing after {timeout} s:\n{self.output}"
            time.sleep(0.1)

    def expect(self, code: int, timeout: float = PATIENCE) -> str:
        found = int(docker("wait", self.name, timeout=timeout))
        assert found == code, f"exit code {found}, expected {code}:\n{self.output}"
        return self.output


@contextmanager
def containers(network: str | None = None) -> Iterator[Callable[..., Container]]:
    """Yields what starts a container; all of them, and the network, are removed at the end."""
    mark = uuid.uuid4().hex[:8]
    started: list[str] = []
    net = f"{network}-{mark}" if network else "none"
    if network:
        docker("network", "create", net)

    def start(
        image: str, argv: Sequence[str], *, host: str, mounts: Mapping[Path, str] = {},
        env: Mapping[str, str] = {}, options: Sequence[str] = (),
    ) -> Container:  # fmt: skip
        name = f"{host}-{mark}-{len(started)}"
        started.append(name)
        docker(
            "run", "--detach", "--name", name, "--hostname", host, "--network", net,
            *(["--network-alias", host] if network else []),
            "--user", f"{os.getuid()}:{os.getgid()}",
            *(word for path, at in mounts.items() for word in ("--volume", f"{path}:{at}")),
            *(word for key, value in env.items() for word in ("--env", f"{key}={value}")),
            *options, image, *argv,
        )  # fmt: skip
        return Container(name)

    try:
        yield start
    finally:
        for name in started:
            subprocess.run(["docker", "rm", "--force", "--volumes", name], capture_output=True,
                           timeout=60, check=False)  # fmt: skip
        if network:
            subprocess.run(["docker", "network", "rm", net], capture_output=True, timeout=60,
                           check=False)  # fmt: skip
