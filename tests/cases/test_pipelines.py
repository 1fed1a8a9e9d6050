"""Faults that people reported for pipelines like ours (KP = kubeflow/pipelines).

KP#13862 (a cache hit across a moved tag) is held by tests/pipelines/submit/test_images.py; KP#3364
and #4692 (a terminated run leaves the training job running) by tests/docker/test_cluster.py.
"""

import json
from pathlib import Path

import pytest

from components.steps import location
from pipelines.cli import main
from pipelines.compile import COMPONENTS
from pipelines.run import EXECUTOR_OUTPUT, StepFailed, check_outputs
from tests.components.test_steps import Artifact
from tests.pipelines import ir

PIPELINE = "train_evaluate_export"


def test_no_kubernetes_setting_stands_in_a_vertex_yaml() -> None:
    """KP#11241: Vertex refuses a second document, and what only Kubernetes understands."""
    text = ir.text(PIPELINE, "vertex")
    assert "\n---" not in text
    assert "platforms" not in text
    assert "kubernetes" not in text


@pytest.mark.parametrize("target", ir.TARGETS)
def test_the_pipeline_takes_uris_and_no_artifacts(target: str) -> None:
    """KP#12555: a pipeline with artifact inputs cannot run locally."""
    inputs = ir.document(PIPELINE, target)["root"]["inputDefinitions"]
    assert set(inputs) == {"parameters"}
    assert inputs["parameters"]["sources"]["parameterType"] == "LIST"


@pytest.mark.parametrize("target", ir.TARGETS)
def test_every_parameter_reaches_its_step_as_an_input(target: str) -> None:
    """KP#11504, KP#10902: parameters were left as placeholders that nothing expands."""
    document = ir.document(PIPELINE, target)
    assert "{{channel:" not in json.dumps(document)
    tasks = document["root"]["dag"]["tasks"]
    inner = document["components"]["comp-condition-1"]["dag"]["tasks"]
    used = {
        source["componentInputParameter"].removeprefix("pipelinechannel--")
        for task in (*tasks.values(), *inner.values())
        for source in task["inputs"].get("parameters", {}).values()
        if "componentInputParameter" in source
    }
    assert set(document["root"]["inputDefinitions"]["parameters"]) <= used
    workers = tasks["train-model"]["inputs"]["parameters"]["workers"]
    if target == "vertex":  # one a replica; how many replicas there are is no parameter
        assert workers == {"runtimeValue": {"constant": 1.0}}
        assert "workers" not in document["root"]["inputDefinitions"]["parameters"]
    else:
        assert workers == {"componentInputParameter": "workers"}


@pytest.mark.timeout(120)
def test_a_failed_step_fails_the_run(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    """KP#13332: a failed container was reported as SUCCESS."""
    params = ["--param", f"sources={tmp_path}/absent.csv", "--param", "label=y"]
    assert main(["run", PIPELINE, *params, "--workdir", f"{tmp_path}/runs"]) == 2
    out, err = capsys.readouterr()
    assert "step shard-data failed" in err
    assert "train-model" not in out


def test_a_container_that_left_nothing_is_no_success(tmp_path: Path) -> None:
    """KP#13332: DockerRunner may not see how a container has ended."""
    (tmp_path / "shard-data" / "dataset").mkdir(parents=True)
    with pytest.raises(StepFailed, match="step shard-data failed: its container has ended without"):
        check_outputs(tmp_path, ["shard-data", "taken-from-the-cache"])
    (tmp_path / "shard-data" / EXECUTOR_OUTPUT).write_text("{}")
    check_outputs(tmp_path, ["shard-data"])


def test_gcs_is_read_by_its_uri_and_never_through_the_mount() -> None:
    """gcsfuse#1830, #4333: /gcs starves training, or is not mounted."""
    assert location(Artifact("gs://bucket/dataset", "/gcs/bucket/dataset")) == "gs://bucket/dataset"


@pytest.mark.parametrize("name", COMPONENTS)
def test_no_component_asks_docker_or_pip_for_anything(name: str) -> None:
    """KP#12552: the subprocess runner needed docker (the run itself: pipelines/test_run.py)."""
    (executor,) = ir.document(name)["deploymentSpec"]["executors"].values()
    assert not {"pip", "docker"} & set(" ".join(executor["container"]["command"][:3]).split())
