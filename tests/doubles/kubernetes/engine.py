"""The Docker engine, through its command line: networks and containers of one double.

All that is made here carries the label of the run, so that all of it can be found and removed.
"""

from __future__ import annotations

import functools
import json
import subprocess
import threading
import uuid
from typing import Any

LABEL = "dev.castell.double"
# Longer than anything but waiting for a container takes, also on a busy machine.
_SECONDS = 60


class EngineError(Exception):
    """What the engine said, without its prefixes."""


@functools.cache
def answers() -> bool:
    """Whether there is an engine; asked once."""
    try:
        return (
            subprocess.run(
                ["docker", "info"], capture_output=True, timeout=20, check=False
            ).returncode
            == 0
        )
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False


class Engine:
    """`run_id` stands in the name and label of everything."""

    def __init__(self) -> None:
        self.run_id = uuid.uuid4().hex[:8]
        self._networks: dict[str, str] = {}
        self._lock = threading.Lock()

    def call(self, *words: str, seconds: float | None = _SECONDS) -> str:
        """Runs `docker WORDS` and returns what it prints.

        Raises:
          EngineError: it failed.
        """
        done = subprocess.run(
            ["docker", *words], capture_output=True, text=True, timeout=seconds, check=False
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"docker exits with {done.returncode}"]
            said = next((line for line in lines if "Error" in line), lines[0])
            raise EngineError(
                said.removeprefix("docker: ").removeprefix("Error response from daemon: ")
            )
        return done.stdout.strip()

    def container(self, namespace: str, pod: str) -> str:
        """The name of a pod's container."""
        return f"castell-{self.run_id}-{namespace}-{pod}"

    def network(self, namespace: str) -> str:
        """The name of a namespace's network, made when first asked for."""
        with self._lock:
            if namespace not in self._networks:
                name = f"castell-{self.run_id}-{namespace}"
                self.call("network", "create", "--label", f"{LABEL}={self.run_id}", name)
                self._networks[namespace] = name
            return self._networks[namespace]

    def gateway(self, namespace: str) -> str:
        """The address at which this machine is seen from a namespace's pods."""
        (shape,) = json.loads(self.call("network", "inspect", self.network(namespace)))
        found: str = shape["IPAM"]["Config"][0]["Gateway"]
        return found

    def inspect(self, container: str) -> Any:
        (shape,) = json.loads(self.call("container", "inspect", container))
        return shape

    def image_user(self, image: str) -> str | None:
        """The user that an image runs as; None where there is no such image."""
        try:
            (shape,) = json.loads(self.call("image", "inspect", image))
        except EngineError:
            return None
        user: str = shape["Config"].get("User") or ""
        return user

    def follow(self, container: str, *options: str) -> subprocess.Popen[bytes]:
        """Starts `docker logs`; stdout and stderr come as one, as a pod's log does."""
        return subprocess.Popen(
            ["docker", "logs", *options, container],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def remove(self, container: str) -> None:
        self.call("rm", "--force", "--volumes", container)

    def clear(self) -> None:
        """Removes everything of this run; without a network there is nothing."""
        if not self._networks:
            return
        mine = ("--quiet", "--filter", f"label={LABEL}={self.run_id}")
        if containers := self.call("ps", "--all", *mine).split():
            self.call("rm", "--force", "--volumes", *containers)
        if networks := self.call("network", "ls", *mine).split():
            self.call("network", "rm", *networks)
