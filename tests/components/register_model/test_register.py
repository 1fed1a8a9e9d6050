"""An exported model becomes a version in the Model Registry, through Google's client."""

from collections.abc import Iterator

import pytest

from components.register_model import step
from tests.components.test_steps import Artifact
from tests.doubles.vertex import Vertex
from tests.pipelines import golden

IMAGE = "europe-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest"
PARENT = "projects/a-project/locations/europe-west4"


@pytest.fixture
def vertex() -> Iterator[Vertex]:
    with Vertex() as server:
        yield server


def register(vertex: Vertex, uri: str = "gs://bucket/model", **options: object) -> Artifact:
    model = Artifact(uri, "/gcs/bucket/model")
    model.metadata = {"step": 500, "checkpoint_fingerprint": "abc"}
    registered = Artifact("gs://bucket/registered", "/gcs/bucket/registered")
    given: dict[str, object] = {
        "name": "late", "project": "a-project", "location": "europe-west4", "serving_image": IMAGE,
        "parent_model": "", "version_aliases": [], "labels": {}, "kms_key": "",
        "api_endpoint": vertex.address, **options,
    }  # fmt: skip
    step.run(model, registered, **given)  # type: ignore[arg-type]
    return registered


def test_a_first_version_is_a_new_model(vertex: Vertex) -> None:
    key = "projects/p/locations/europe-west4/keyRings/r/cryptoKeys/k"
    made = register(vertex, version_aliases=["canary"], labels={"team": "delays"}, kms_key=key)
    (asked,) = vertex.sent("POST", "/models:upload")
    golden.check("vertex_model_upload", asked.body)
    assert made.metadata == {"resourceName": f"{PARENT}/models/1", "versionId": "1"}
    assert made.uri.endswith(f"/v1/{PARENT}/models/1")


def test_a_model_of_that_name_gets_a_new_version(vertex: Vertex) -> None:
    register(vertex)
    made = register(vertex)
    assert made.metadata == {"resourceName": f"{PARENT}/models/1", "versionId": "2"}
    assert register(vertex, name="other").metadata["resourceName"] == f"{PARENT}/models/2"


def test_a_parent_may_be_named(vertex: Vertex) -> None:
    register(vertex)
    made = register(vertex, name="renamed", parent_model=f"{PARENT}/models/1")
    assert made.metadata == {"resourceName": f"{PARENT}/models/1", "versionId": "2"}


def test_two_models_of_a_name_are_a_question(
    vertex: Vertex, capsys: pytest.CaptureFixture[str]
) -> None:
    register(vertex)
    register(vertex, name="other")
    vertex.resources[f"{PARENT}/models/2"]["displayName"] = "late"
    with pytest.raises(SystemExit) as left:
        register(vertex)
    assert left.value.code == 2
    assert "2 models are called so; name one by parent_model" in capsys.readouterr().err


def test_a_model_elsewhere_is_refused(vertex: Vertex, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        register(vertex, uri="/data/model")
    assert "registers what lies in gs://" in capsys.readouterr().err
    assert not vertex.asked


def test_a_region_that_there_is_not_is_named(
    vertex: Vertex, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        register(vertex, location="europe-wst4")
    said = "castell: error: location (europe-wst4): no region of Vertex AI, did you mean 'europe-we"
    assert capsys.readouterr().err.startswith(said)
