"""Compiled pipelines that people have edited: one line, whatever is missing."""

from pathlib import Path

import pytest
import yaml

from pipelines.compiled import Compiled
from tests.pipelines import ir
from trainer.errors import UsageError

HEAD = "root: {}\ncomponents: {}\npipelineInfo: {name: a}\n"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "a: 2026-13-45",
        "[root, components, pipelineInfo]",
        "'root components pipelineInfo'",
        "root: 1\ncomponents: 2\npipelineInfo: 3\n",
        "root: {}\ncomponents: {}\npipelineInfo: null\ndeploymentSpec: {executors: {}}\n",
        HEAD,
        HEAD + "deploymentSpec: {executors: null}\n",
        HEAD + "deploymentSpec: {executors: {a: {container: {}}}}\n",
        HEAD + "deploymentSpec: {executors: {}}\n---\n[a]\n",
        HEAD.replace("root: {}", "root: {inputDefinitions: {parameters: {a: {}}}}")
        + "deploymentSpec: {executors: {}}\n",
        HEAD.replace("root: {}", "root: {dag: {tasks: {a: {dependentTasks: 1}}}}")
        + "deploymentSpec: {executors: {}}\n",
        "root: " + "[" * 3000,
    ],
)
def test_what_is_no_pipeline_is_refused_in_a_line(tmp_path: Path, content: str) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(content)
    with pytest.raises(UsageError, match="is not a compiled pipeline") as raised:
        Compiled.read(str(file))
    assert "\n" not in str(raised.value)


def test_a_compiled_pipeline_is_read(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    spec = ir.document("train_evaluate_export", "local", "registry.example/castell:1")
    file.write_text(yaml.safe_dump(spec))
    assert Compiled.read(str(file)).spec == spec


def test_a_directory_is_no_pipeline(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Is a directory"):
        Compiled.read(str(tmp_path))
