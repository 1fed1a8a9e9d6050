"""The training step of a pipeline, as a pod of it: a process, a kubeconfig, artifacts in s3://."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.s3 import KEYS, SETTINGS

_RUN = """
import json, sys
from types import SimpleNamespace
from kfp import dsl
from components.train_model.kubernetes import step
given = json.load(open(sys.argv[1]))
dataset = SimpleNamespace(uri=given.pop("data"), path="", metadata={"fingerprint": "f"})
run = SimpleNamespace(uri=given.pop("output"), path=given.pop("path"), metadata={})
config = dsl.TaskConfig(**given.pop("task_config"))
step.run(dataset, run, config, task="tabular", epochs=0, **given)
print("metadata", json.dumps(run.metadata))
"""


def kubeconfig(path: Path, address: str, namespace: str = "default") -> Path:
    """Writes what a client needs to speak to the double."""
    named = {"name": "double"}
    content = {
        "apiVersion": "v1", "kind": "Config", "current-context": "double",
        "clusters": [{**named, "cluster": {"server": address}}],
        "users": [{**named, "user": {}}],
        "contexts": [
            {**named, "context": {"cluster": "double", "user": "double", "namespace": namespace}}
        ],
    }  # fmt: skip
    path.write_text(yaml.safe_dump(content))
    return path


class Step:
    """One try of the step. env: of the pods; the step itself reaches the store on loopback."""

    def __init__(
        self, place: Path, cluster: str, store: str, *, env: dict[str, str], image: str,
        data: str, output: str, workers: int, config: dict[str, Any],
        kubernetes: dict[str, Any], steps: int = 0, resources: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        place.mkdir(parents=True, exist_ok=True)
        number = len(list(place.glob("step-*.log")))
        self.log = place / f"step-{number}.log"
        given = {
            "data": data, "output": output, "path": str(place / "run"), "image": image,
            "workers": workers, "steps": steps, "config": config, "kubernetes": kubernetes,
            "task_config": {
                "env": [{"name": name, "value": value} for name, value in env.items()],
                "resources": resources or {},
            },
        }  # fmt: skip
        file = place / f"step-{number}.json"
        file.write_text(json.dumps(given))
        environment = {
            **os.environ, **SETTINGS, **KEYS, "AWS_ENDPOINT_URL": store,
            "KUBECONFIG": str(kubeconfig(place / "kubeconfig", cluster)),
        }  # fmt: skip
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _RUN, str(file)], env=environment, stdout=log, stderr=log
            )

    @property
    def output(self) -> str:
        return self.log.read_text()

    @property
    def metadata(self) -> dict[str, Any]:
        (line,) = [line for line in self.output.splitlines() if line.startswith("metadata ")]
        return dict(json.loads(line.removeprefix("metadata ")))

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait_for(self, condition: Callable[[], bool], timeout: float = 120) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            code = self._process.poll()
            assert code is None, f"ended with {code}:\n{self.output}"
            assert time.monotonic() < deadline, f"nothing after {timeout} s:\n{self.output}"
            time.sleep(0.1)

    def expect(self, code: int, timeout: float = 120) -> str:
        try:
            found = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"runs after {timeout} s:\n{self.output}") from None
        assert found == code, f"exit code {found}, expected {code}:\n{self.output}"
        return self.output

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
