"""A version answers at an endpoint for a share of its traffic, is promoted or taken back."""

from collections.abc import Iterator

import pytest

from components.deploy_model import step
from pipelines.cli import main
from tests.components.test_steps import Artifact
from tests.doubles.server import Refused
from tests.doubles.vertex import SERVABLE, Vertex
from tests.pipelines import golden

PARENT = "projects/a-project/locations/europe-west4"


@pytest.fixture
def vertex(monkeypatch: pytest.MonkeyPatch) -> Iterator[Vertex]:
    with Vertex() as server:
        for name, value in {
            "PROJECT": "a-project", "LOCATION": "europe-west4", "API_ENDPOINT": server.address,
        }.items():  # fmt: skip
            monkeypatch.setenv(f"CASTELL_VERTEX_{name}", value)
        name = f"{PARENT}/models/9"
        server.resources[name] = {"displayName": "late", "name": name, **SERVABLE}
        yield server


def deploy(vertex: Vertex, version: int, **options: object) -> Artifact:
    registered, endpoint = Artifact("x", "x"), Artifact("y", "y")
    registered.metadata = {"resourceName": f"{PARENT}/models/9", "versionId": str(version)}
    given: dict[str, object] = {
        "name": "late", "project": "a-project", "location": "europe-west4",
        "machine_type": "n1-standard-4", "min_replicas": 1, "max_replicas": 3,
        "accelerator_type": "", "accelerator_count": 0, "percent": 100, "service_account": "",
        "labels": {}, "kms_key": "", "api_endpoint": vertex.address, **options,
    }  # fmt: skip
    step.run(registered, endpoint, **given)  # type: ignore[arg-type]
    return endpoint


def split(vertex: Vertex) -> dict[str, int]:
    (endpoint,) = (r for n, r in vertex.resources.items() if "/endpoints/" in n)
    return dict(endpoint["trafficSplit"])


def test_the_first_version_makes_the_endpoint_and_takes_all(vertex: Vertex) -> None:
    made = deploy(vertex, 1, percent=10, service_account="server@a", labels={"team": "delays"})
    (created,) = vertex.sent("POST", "/endpoints")
    (deployed,) = vertex.sent("POST", ":deployModel")
    golden.check("vertex_deployment", {"endpoint": created.body, "deploy": deployed.body})
    assert split(vertex) == {"1": 100}
    assert made.metadata["trafficSplit"] == {"1": 100}


def test_a_canary_takes_its_share_is_promoted_or_taken_back(
    vertex: Vertex, capsys: pytest.CaptureFixture[str]
) -> None:
    deploy(vertex, 1)
    deploy(vertex, 2, percent=10)
    assert len(vertex.sent("POST", "/endpoints")) == 1
    assert split(vertex) == {"1": 90, "2": 10}
    assert main(["traffic", "late", "--percent", "50"]) == 0
    assert split(vertex) == {"1": 50, "2": 50}
    assert main(["traffic", "late", "--rollback"]) == 0
    assert split(vertex) == {"1": 100, "2": 0}
    assert main(["traffic", "late", "--percent", "100", "--undeploy-idle"]) == 0
    assert split(vertex) == {"2": 100}
    capsys.readouterr()
    assert main(["traffic", "late"]) == 0
    assert capsys.readouterr().out == "100 %  2\n"


def test_the_only_model_keeps_its_traffic(
    vertex: Vertex, capsys: pytest.CaptureFixture[str]
) -> None:
    deploy(vertex, 1)
    assert main(["traffic", "late", "--rollback"]) == 2
    assert "it keeps all traffic" in capsys.readouterr().err
    assert main(["traffic", "lat", "--rollback"]) == 2
    assert "there is none of that name" in capsys.readouterr().err
    assert main(["traffic", "late", "--percent", "0"]) == 2
    assert "must be 1 to 100" in capsys.readouterr().err


def test_a_model_that_does_not_come_up_changes_no_traffic(
    vertex: Vertex, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    deploy(vertex, 1)

    def refuse(*args: object) -> None:
        raise Refused(400, "the container does not answer")

    vertex.routes = [(m, p, refuse if ":deployModel" in p else a) for m, p, a in vertex.routes]
    with pytest.raises(SystemExit) as left:
        deploy(vertex, 2, percent=10)
    assert left.value.code == 2
    assert "the container does not answer" in capsys.readouterr().err
    assert split(vertex) == {"1": 100}
