"""The replicas of a training job, as Vertex AI would start them, side by side on this machine."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.compile import compile_to
from tests.datasets import make_dataset
from tests.workers import free_ports

STEPS = 20
SLEEPER = "workerpool2"


def pools_of(directory: Path) -> list[dict[str, Any]]:
    """Returns the worker pools of a compiled pipeline: chief, one worker, holder, evaluator."""
    file = directory / "x.yaml"
    flags = {"evaluator": "true"}
    compile_to(str(file), "train_evaluate_export", target="vertex", workers=2, flags=flags)
    component = yaml.safe_load(file.read_text())["components"]["comp-train-model"]
    pools = component["inputDefinitions"]["parameters"]["worker_pool_specs"]["defaultValue"]
    assert len(pools) == 4
    return list(pools)


def executor_input(root: Path, data: str, output_file: Path) -> str:
    def artifact(name: str, kind: str, uri: str) -> Any:
        return {"artifacts": [{"name": name, "type": {"schemaTitle": kind}, "uri": uri}]}

    config = {"global_batch": 64, "eval_every": 10, "heartbeat_timeout_seconds": 3}
    values = {"task": "tabular", "workers": 1, "steps": STEPS, "epochs": 0.0, "config": config}
    return json.dumps(
        {
            "inputs": {
                "parameterValues": values,
                "artifacts": {"dataset": artifact("dataset", "system.Dataset", data)},
            },
            "outputs": {
                "artifacts": {"run": artifact("run", "system.Model", str(root / "run"))},
                "outputFile": str(output_file),
            },
        }
    )


@pytest.mark.timeout(240)
def test_all_train_together_and_the_chief_alone_writes_outputs(tmp_path: Path) -> None:
    data = make_dataset(tmp_path / "data", rows=2000).path
    pools = pools_of(tmp_path)
    names = [f"workerpool{i}" for i in range(len(pools))]
    hosts = {n: [f"127.0.0.1:{port}"] for n, port in zip(names, free_ports(4), strict=True)}
    running = {}
    for name, pool in zip(names, pools, strict=True):
        if name == SLEEPER:
            assert pool["container_spec"]["command"] == ["sleep", "infinity"]
            continue
        container = pool["container_spec"]
        given = executor_input(tmp_path, data, tmp_path / f"{name}.json")
        args = [given if a == "{{$.json_escape[1]}}" else a for a in container["args"]]
        task = {"type": name, "index": 0}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"}
        env["CLUSTER_SPEC"] = json.dumps({"cluster": hosts, "task": task, "environment": "cloud"})
        with (tmp_path / f"{name}.log").open("w") as log:
            running[name] = subprocess.Popen(
                [*container["command"], *args], env=env, stdout=log, stderr=subprocess.STDOUT
            )
    try:
        for name, replica in running.items():
            code = replica.wait(200)
            assert code == 0, f"{name}: {(tmp_path / f'{name}.log').read_text()[-3000:]}"
    finally:
        for replica in running.values():
            replica.kill()
    assert [p.name for p in tmp_path.glob("workerpool*.json")] == ["workerpool0.json"]
    said = json.loads((tmp_path / "workerpool0.json").read_text())
    (run,) = said["artifacts"]["run"]["artifacts"]
    assert (run["metadata"]["step"], run["metadata"]["replicas"]) == (STEPS, 2)
    assert run["metadata"]["strategy"] == "multi_worker"
    evaluated = (tmp_path / "run" / "evaluations.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in evaluated] == [10, STEPS]
