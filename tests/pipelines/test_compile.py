"""What `castell compile` writes: valid for KFP's own messages, equal but for the training step."""

import json
from pathlib import Path

import pytest
from kfp import compiler, components, dsl

from pipelines.compile import COMPONENTS, compile_to
from tests.pipelines import ir
from trainer.errors import UsageError

PIPELINE = "train_evaluate_export"
# The components that it always has.
STEPS = ("shard_data", "validate_data", "train_model", "evaluate_model", "export_model")


@pytest.mark.parametrize("target", ir.TARGETS)
def test_the_pipeline_is_valid_for_every_target(target: str) -> None:
    document = ir.document(PIPELINE, target)
    spec, executors = ir.pipeline_spec(document), ir.deployment(document).executors
    assert spec.pipeline_info.name == "train-evaluate-export"
    assert set(executors) == {f"exec-{name.replace('_', '-')}" for name in STEPS}
    images = {name: str(e.container.image) for name, e in executors.items()}
    if target == "vertex":
        launcher = images.pop("exec-train-model")
        assert launcher.startswith("gcr.io/ml-pipeline/google-cloud-pipeline-components:2.")
    assert set(images.values()) == {"castell:0.1.0"}


@pytest.mark.parametrize("target", ir.TARGETS)
def test_export_waits_for_the_verdict(target: str) -> None:
    spec = ir.pipeline_spec(ir.document(PIPELINE, target))
    steps = {"shard-data", "validate-data", "train-model", "evaluate-model", "condition-1"}
    assert set(spec.root.dag.tasks) == steps
    condition = spec.root.dag.tasks["condition-1"]
    assert list(condition.dependent_tasks) == ["evaluate-model", "shard-data", "train-model"]
    assert condition.trigger_policy.condition.endswith(
        "['pipelinechannel--evaluate-model-Output'] == true"
    )
    assert set(spec.components["comp-condition-1"].dag.tasks) == {"export-model"}


@pytest.mark.parametrize("target", ir.TARGETS)
def test_training_waits_for_the_data_to_be_validated(target: str) -> None:
    tasks = ir.pipeline_spec(ir.document(PIPELINE, target)).root.dag.tasks
    assert list(tasks["validate-data"].dependent_tasks) == ["shard-data"]
    assert sorted(tasks["train-model"].dependent_tasks) == ["shard-data", "validate-data"]


@pytest.mark.parametrize("target", ["kfp", "vertex"])
def test_targets_differ_in_the_training_step_and_the_way_to_the_sources_alone(target: str) -> None:
    local, other = ir.document(PIPELINE, "local"), ir.document(PIPELINE, target)
    for document in (local, other):
        assert document["deploymentSpec"]["executors"].pop("exec-train-model")
        assert document["components"].pop("comp-train-model")
        given = document["root"]["dag"]["tasks"]["train-model"]["inputs"]["parameters"]
        assert given.pop("workers")
        for name in ("image", "kubernetes"):  # of the pods that the step makes
            assert (given.pop(name, None) is None) == (document is local or target == "vertex")
        # Where sources and baselines are, if that is the cluster's own store.
        for step in ("exec-shard-data", "exec-validate-data"):
            container = document["deploymentSpec"]["executors"][step]["container"]
            reach = {one["name"] for one in container.pop("env", [])}
            own = document is other and target == "kfp"
            assert reach == ({"AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION"} if own else set())
        # Known when it is compiled, or given to each run.
        workers = document["root"]["inputDefinitions"]["parameters"].pop("workers", None)
        assert (workers is None) == (document is other and target == "vertex")
    assert other == local


def test_no_step_installs_anything_and_all_run_in_one_image() -> None:
    image = "registry.example/castell@sha256:" + "0" * 64
    document = ir.document(PIPELINE, "kfp", image)
    for executor in document["deploymentSpec"]["executors"].values():
        assert executor["container"]["image"] == image
        assert "pip" not in json.dumps(executor["container"]["command"])


@pytest.mark.parametrize("name", COMPONENTS)
def test_a_component_loads_and_says_what_it_takes(name: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name}.yaml"
    compile_to(str(file), name)
    component = components.load_component_from_file(str(file))
    assert component.component_spec.implementation.container.image == "castell:0.1.0"
    for described in ir.document(name)["root"]["inputDefinitions"].values():
        for parameter, definition in described.items():
            assert definition.get("description"), parameter


def test_components_work_in_another_s_pipeline(tmp_path: Path) -> None:
    for name in ("shard_data", "train_model"):
        compile_to(str(tmp_path / f"{name}.yaml"), name)
    shard = components.load_component_from_file(str(tmp_path / "shard_data.yaml"))
    train = components.load_component_from_file(str(tmp_path / "train_model.yaml"))

    @dsl.pipeline(name="theirs")
    def theirs(table: str) -> None:
        sharded = shard(sources=[table], label="y")
        train(dataset=sharded.outputs["dataset"], config={"global_batch": 64})

    compiler.Compiler().compile(theirs, str(tmp_path / "theirs.yaml"))
    assert (tmp_path / "theirs.yaml").exists()


def test_workers_is_the_default_of_a_parameter(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    compile_to(str(file), PIPELINE, workers=3)
    assert "workers: int [Default: 3" in file.read_text()


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("train", {}, "no pipeline or component 'train'"),
        (PIPELINE, {"target": "vertx"}, "did you mean 'vertex'?"),
        (PIPELINE, {"workers": 0}, "at least 1"),
        ("shard_data", {"target": "kfp"}, "the same everywhere"),
    ],
)
def test_a_wrong_name_is_refused(
    tmp_path: Path, name: str, options: dict[str, str], says: str
) -> None:
    with pytest.raises(UsageError, match=says.replace("?", "[?]")):
        compile_to(str(tmp_path / "x.yaml"), name, **options)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("output", ["x.txt", "absent/x.yaml", "folder.yaml"])
def test_an_output_that_cannot_be_written_is_refused(tmp_path: Path, output: str) -> None:
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(UsageError, match="--output"):
        compile_to(str(tmp_path / output), PIPELINE)
    assert [p.name for p in tmp_path.iterdir()] == ["folder.yaml"]


def test_an_older_file_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("old")
    compile_to(str(file), "shard_data")
    assert ir.text("shard_data") == file.read_text()
    assert [p.name for p in tmp_path.iterdir()] == ["x.yaml"]
