"""What the platforms' clients do that ours goes around; an upgrade that changes it shows here."""

from pathlib import Path
from typing import Any

import kfp as kfp_package
import pytest
from google_cloud_pipeline_components.container.v1.gcp_launcher.utils import json_util

from tests.doubles.kfp import Kfp
from tests.doubles.vertex import Vertex
from tests.pipelines import ir

pytestmark = pytest.mark.filterwarnings("ignore:This client only works:FutureWarning")


def test_google_s_launcher_drops_empty_pools() -> None:
    """So a pool that only sleeps stands before an evaluator (targets/vertex/pools.py)."""
    chief, evaluator = {"replica_count": 1}, {"replica_count": 2}
    nothing: list[dict[str, Any]] = [{}, {"replica_count": 0}, {"machine_spec": {}}]
    for empty in nothing:
        assert json_util.recursive_remove_empty([chief, empty, evaluator]) == [chief, evaluator]


def test_kfp_s_client_leaves_the_cache_on_inside_conditions(kfp: Kfp, tmp_path: Path) -> None:
    """So `--no-cache` is written into the pipeline (compiled.py)."""
    file = tmp_path / "x.yaml"
    file.write_text(ir.text("train_evaluate_export", "local"))
    client = kfp_package.Client(host=kfp.address)
    experiment = client.create_experiment("x")
    client.run_pipeline(
        experiment.experiment_id, "x", str(file), {"sources": ["x"]}, enable_caching=False
    )
    (asked,) = kfp.sent("POST", "/runs")
    spec: dict[str, Any] = asked.body["pipeline_spec"]
    inside = spec["components"]["comp-condition-1"]["dag"]["tasks"]["export-model"]
    assert inside["cachingOptions"] == {"enableCache": True}
    assert spec["root"]["dag"]["tasks"]["train-model"]["cachingOptions"] == {}


@pytest.mark.parametrize("client", ["kfp", "vertex"])
def test_no_client_looks_at_parameters(
    client: str, kfp: Kfp, vertex: Vertex, tmp_path: Path
) -> None:
    """So `castell submit` does (parameters.py)."""
    file = tmp_path / "x.yaml"
    file.write_text(ir.text("train_evaluate_export", "local"))
    wrong = {"no_such": 1, "label": {"a": 1}}
    if client == "kfp":
        api = kfp_package.Client(host=kfp.address)
        api.run_pipeline(api.create_experiment("x").experiment_id, "x", str(file), wrong)
        (sent,) = kfp.sent("POST", "/runs")
        assert sent.body["runtime_config"]["parameters"] == wrong
    else:
        from components.google_cloud import connect

        aiplatform = connect("a-project", "us-central1", vertex.address)
        job = aiplatform.PipelineJob(
            "x", str(file), pipeline_root="gs://b/r", parameter_values={"label": {"a": 1}}
        )
        job.submit()
        (sent,) = vertex.sent("POST", "/pipelineJobs")
        assert sent.body["runtimeConfig"]["parameterValues"] == {"label": {"a": 1}}
