"""Runs on Vertex AI: what Google's client sends, and what is made of the answers."""

import json
import os
from pathlib import Path

import pytest
from google.api_core.exceptions import RetryError, ServiceUnavailable

from components.google_cloud import asking
from components.reach import Unreachable
from tests.doubles.vertex import Vertex, task
from tests.pipelines import golden, ir
from tests.pipelines.submit.calls import castell, submit

JOB = "projects/1/locations/us-central1/customJobs/77"
SETTINGS = """
vertex:
  location: europe-west4
  service_account: runner@a-project.iam.gserviceaccount.com
  network: projects/1/global/networks/shared
  kms_key: projects/k/locations/europe-west4/keyRings/r/cryptoKeys/c
  labels: {team: delays}
"""


def the_run(vertex: Vertex) -> str:
    (asked,) = vertex.sent("POST", "/pipelineJobs")
    return asked.query["pipelineJobId"]


@pytest.mark.timeout(120)
def test_a_run_is_what_was_asked_for(vertex: Vertex, capsys: pytest.CaptureFixture[str]) -> None:
    Path("castell.yaml").write_text(SETTINGS)
    assert submit("vertex", "--name", "flights", "--machine-type", "n1-highmem-8") == 0
    (asked,) = vertex.sent("POST", "/pipelineJobs")
    assert asked.path == "/v1/projects/a-project/locations/europe-west4/pipelineJobs"
    spec = asked.body.pop("pipelineSpec")
    golden.check("vertex_pipeline_job", asked.body)
    job = spec["components"]["comp-train-model"]["inputDefinitions"]["parameters"]
    assert job["network"]["defaultValue"] == "projects/1/global/networks/shared"
    (pool,) = job["worker_pool_specs"]["defaultValue"]
    assert pool["machine_spec"] == {"machine_type": "n1-highmem-8"}
    run = the_run(vertex)
    assert run.startswith("train-evaluate-export-")
    assert capsys.readouterr().out.splitlines() == [
        f"run {run}",
        "https://console.cloud.google.com/vertex-ai/locations/europe-west4/pipelines/runs/"
        f"{run}?project=a-project",
    ]


def test_the_pipeline_is_sent_as_it_was_compiled(vertex: Vertex) -> None:
    assert submit("vertex") == 0
    (asked,) = vertex.sent("POST", "/pipelineJobs")
    image = os.environ["CASTELL_IMAGE"]
    assert asked.body["pipelineSpec"] == ir.document("train_evaluate_export", "vertex", image)


def test_a_schedule_holds_the_whole_run(vertex: Vertex, capsys: pytest.CaptureFixture[str]) -> None:
    assert submit("vertex", "--cron", "TZ=Europe/Paris 30 2 * * *", "--name", "nightly") == 0
    (asked,) = vertex.sent("POST", "/schedules")
    asked.body["createPipelineJobRequest"]["pipelineJob"].pop("pipelineSpec")
    golden.check("vertex_schedule", asked.body)
    name = capsys.readouterr().out.splitlines()[0].removeprefix("schedule ")
    assert castell("cancel", name, "--schedule") == 0
    assert not [n for n in vertex.resources if "/schedules/" in n]
    assert submit("vertex", "--cron", "daily") == 2
    assert "must be 5 fields" in capsys.readouterr().err


def test_a_run_is_noted_in_its_experiment(vertex: Vertex) -> None:
    assert submit("vertex", "--experiment", "delays") == 0
    assert submit("vertex", "--experiment", "delays", "--name", "second") == 0
    store = "projects/a-project/locations/us-central1/metadataStores/default/contexts"
    experiment = vertex.resources[f"{store}/delays"]
    assert experiment["schemaTitle"] == "system.Experiment"
    jobs = [asked.query["pipelineJobId"] for asked in vertex.sent("POST", "/pipelineJobs")]
    assert experiment["childContexts"] == [f"{store}/{job}" for job in jobs]


def test_an_experiment_that_cannot_be_made_stops_the_run(
    vertex: Vertex, capsys: pytest.CaptureFixture[str]
) -> None:
    vertex.routes = [r for r in vertex.routes if "/contexts" not in r[1]]
    assert submit("vertex", "--experiment", "delays") == 2
    assert "castell: error: experiment delays: " in capsys.readouterr().err
    assert not vertex.sent("POST", "/pipelineJobs")


def test_workers_is_no_parameter_there(vertex: Vertex, capsys: pytest.CaptureFixture[str]) -> None:
    assert submit("vertex", params=("sources=gs://b/x", "label=y", "workers=2")) == 2
    assert "use --workers N" in capsys.readouterr().err
    assert not vertex.asked
    assert submit("vertex", "--workers", "3") == 0
    (asked,) = vertex.sent("POST", "/pipelineJobs")
    declared = asked.body["pipelineSpec"]["components"]["comp-train-model"]["inputDefinitions"]
    pools = declared["parameters"]["worker_pool_specs"]["defaultValue"]
    assert [pool["replica_count"] for pool in pools] == [1, 2]


def test_a_failed_step_ends_the_wait_with_its_own_last_word(
    vertex: Vertex, capsys: pytest.CaptureFixture[str]
) -> None:
    vertex.log = [
        {"job": "77", "text": "step 1/100"},
        {"job": "77", "text": "castell: error: training ended with exit code 3: diverged"},
    ]
    said = "The replica workerpool0-0 exited with a non-zero status of 3."
    vertex.script = [
        {"state": "RUNNING", "tasks": [task("train-model", "RUNNING")]},
        {"state": "FAILED", "tasks": [task("train-model", "FAILED", error=said, job=JOB)]},
    ]
    assert submit("vertex", "--wait", "--poll-seconds", "0.01") == 3
    out, err = capsys.readouterr()
    assert out.splitlines()[2:] == ["▸ train-model: running", "▸ train-model: failed"]
    assert err == (
        "castell: error: step train-model failed: training ended with exit code 3: diverged\n"
    )


def test_without_its_logs_a_failed_step_has_vertex_s_word(
    vertex: Vertex, capsys: pytest.CaptureFixture[str]
) -> None:
    vertex.script = [{"state": "FAILED", "tasks": [task("shard-data", "FAILED", error="no quota")]}]
    assert submit("vertex", "--wait", "--poll-seconds", "0.01") == 1
    assert "step shard-data failed: no quota" in capsys.readouterr().err


FALLBACKS = """
vertex:
  machine_type: g2-standard-8
  accelerator_type: NVIDIA_L4
  fallbacks:
    - {location: europe-west4}
    - {machine_type: n1-standard-8, accelerator_type: NVIDIA_TESLA_T4}
"""
NO_QUOTA = "The following quotas are exceeded: CustomModelTrainingL4GPUsPerProjectPerRegion"


def test_without_quota_the_next_machine_and_region_are_tried(
    vertex: Vertex, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("castell.yaml").write_text(FALLBACKS)
    without = [{"state": "FAILED", "tasks": [task("train-model", "FAILED", error=NO_QUOTA)]}]
    vertex.scripts = [without, without, [{"state": "SUCCEEDED"}]]
    assert submit("vertex", "--wait", "--poll-seconds", "0.01") == 0
    asked = vertex.sent("POST", "/pipelineJobs")
    assert [a.path.split("/")[5] for a in asked] == ["us-central1", "europe-west4", "us-central1"]
    assert asked[2].body["labels"] == {
        "castell-machine": "n1-standard-8", "castell-region": "us-central1",
    }  # fmt: skip
    declared = asked[2].body["pipelineSpec"]["components"]["comp-train-model"]["inputDefinitions"]
    (pool,) = declared["parameters"]["worker_pool_specs"]["defaultValue"]
    assert pool["machine_spec"]["accelerator_type"] == "NVIDIA_TESLA_T4"
    assert declared["parameters"]["labels"]["defaultValue"] == asked[2].body["labels"]
    err = capsys.readouterr().err
    assert "next: g2-standard-8 with 1 NVIDIA_L4 in europe-west4" in err


def test_another_failure_is_not_tried_elsewhere(vertex: Vertex) -> None:
    Path("castell.yaml").write_text(FALLBACKS)
    vertex.script = [{"state": "FAILED", "tasks": [task("train-model", "FAILED", error="bad")]}]
    assert submit("vertex", "--wait", "--poll-seconds", "0.01") == 1
    assert len(vertex.sent("POST", "/pipelineJobs")) == 1


def test_every_try_is_checked_before_the_first(
    vertex: Vertex, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("castell.yaml").write_text(FALLBACKS.replace("n1-standard-8", "e2-standard-8"))
    assert submit("vertex", "--wait") == 2
    assert "machine_type e2-standard-8 takes no accelerator" in capsys.readouterr().err
    assert not vertex.asked


def test_status_cancel_and_logs_of_a_run(
    vertex: Vertex, capsys: pytest.CaptureFixture[str]
) -> None:
    submit("vertex", "--name", "flights")
    run = the_run(vertex)
    vertex.log = [{"job": "77", "text": "reading"}, {"job": "78", "text": "another's"}]
    vertex.script = [{"state": "RUNNING", "tasks": [task("shard-data", "RUNNING", job=JOB)]}]
    capsys.readouterr()
    assert castell("status", run) == 0
    assert capsys.readouterr().out.splitlines()[0] == "flights: running"
    assert castell("logs", run) == 0
    assert capsys.readouterr().out == "▸ shard-data\n    reading\n"
    assert castell("cancel", run) == 0
    assert castell("status", run, "--json") == 0
    said = capsys.readouterr().out.splitlines()[-1]
    assert json.loads(said)["state"] == "cancelled"
    assert castell("status", "no-such-run") == 2
    assert "no-such-run: Vertex knows no such thing" in capsys.readouterr().err


def test_the_dags_around_tasks_are_no_steps(
    vertex: Vertex, capsys: pytest.CaptureFixture[str]
) -> None:
    inner = {**task("export-model", "RUNNING", 3), "parentTaskId": 2}
    vertex.script = [{"state": "RUNNING", "tasks": [task("condition-1", "RUNNING", 2), inner]}]
    submit("vertex")
    capsys.readouterr()
    assert castell("status", the_run(vertex), "--json") == 0
    tasks = json.loads(capsys.readouterr().out)["tasks"]
    assert [t["name"] for t in tasks] == ["export-model"]


def test_what_is_shown_is_what_is_sent(vertex: Vertex, capsys: pytest.CaptureFixture[str]) -> None:
    assert submit("vertex", "--name", "flights", "--show") == 0
    assert not vertex.asked
    shown = json.loads(capsys.readouterr().out)
    assert submit("vertex", "--name", "flights") == 0
    (asked,) = vertex.sent("POST", "/pipelineJobs")
    assert shown["method"] == asked.method
    assert shown["url"].startswith(vertex.address + asked.path + "?pipelineJobId=")
    assert shown["body"] == asked.body


def test_the_address_that_is_shown_is_google_s(
    vertex: Vertex, capsys: pytest.CaptureFixture[str]
) -> None:
    assert submit("vertex", "--show", "--api-endpoint", "") == 0
    url = json.loads(capsys.readouterr().out)["url"]
    assert url.startswith("https://us-central1-aiplatform.googleapis.com/v1/projects/a-project/")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--project", ""), "project is not set"),
        (("--labels", "{team: 1 a}"), "labels (team: 1 a)"),
        (("--machine-typ", "x"), "did you mean '--machine-type'?"),
        (("--machine-type", "ct6e-standard-4t"), "TensorFlow does not run on TPU v6e"),
        (("--strategy", "CHEAP"), "--strategy (CHEAP): input should be 'STANDARD', 'SPOT'"),
        (("--host", "http://x"), "--host: no setting of target vertex"),
        (("--network", "default"), "network (default): must be projects/NUMBER/"),
    ],
)
def test_a_wrong_setting_is_refused_before_any_request(
    vertex: Vertex, flags: tuple[str, str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert submit("vertex", *flags) == 2
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1
    assert not vertex.asked


def test_a_file_for_kubernetes_is_not_sent(
    vertex: Vertex, capsys: pytest.CaptureFixture[str]
) -> None:
    """KP#11241: Vertex refuses a second document."""
    text = ir.text("train_evaluate_export", "vertex") + "\n---\nplatforms: {kubernetes: {}}\n"
    Path("two.yaml").write_text(text)
    flags = ["--param", "sources=gs://b/x", "--param", "label=y"]
    assert castell("submit", "two.yaml", "--target", "vertex", *flags) == 2
    assert "compile it with --target vertex" in capsys.readouterr().err
    assert not vertex.asked


def test_what_is_compiled_in_cannot_be_set_afterwards(
    vertex: Vertex, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("x.yaml").write_text(ir.text("train_evaluate_export", "vertex"))
    given = ["x.yaml", "--target", "vertex", "--param", "sources=gs://b/x", "--param", "label=y"]
    assert castell("submit", *given, "--machine-type", "n1-highmem-8") == 2
    assert "--machine-type: x.yaml is compiled" in capsys.readouterr().err
    assert castell("submit", *given, "--workers", "2") == 2
    assert not vertex.asked
    assert castell("submit", *given, "--service-account", "a@b.iam.gserviceaccount.com") == 0


def test_what_the_client_refuses_is_one_line(
    vertex: Vertex, capsys: pytest.CaptureFixture[str]
) -> None:
    assert submit("vertex", "--name", "x" * 200) == 2
    assert "Vertex's client refused it" in capsys.readouterr().err


def test_a_vertex_that_is_not_there_is_said_at_once(
    vertex: Vertex, capsys: pytest.CaptureFixture[str]
) -> None:
    assert submit("vertex", "--api-endpoint", "http://127.0.0.1:9") == 2
    assert "Vertex at http://127.0.0.1:9 cannot be reached: " in capsys.readouterr().err


def test_what_the_client_gives_up_is_worth_another_look() -> None:
    with pytest.raises(Unreachable, match="no route"), asking():
        raise RetryError("gave up", OSError("no route"))  # type: ignore[no-untyped-call]
    with pytest.raises(Unreachable, match=r"refused it \(503\): busy"), asking():
        raise ServiceUnavailable("busy")  # type: ignore[no-untyped-call]


def test_a_login_page_is_no_answer(
    vertex: Vertex, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(vertex, "handle", lambda asked: (200, {}, "<html>log in</html>"))
    for code in (submit("vertex"), castell("status", "a-run")):
        assert code == 2
    out, err = capsys.readouterr()
    assert err.count("Vertex answers, but not as its API does") == 2
    assert not out
    assert err.count("\n") == 2


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--param", "config={a: .nan}"), "config.a (nan): must be a number"),
        (("--param", "config={a: 2026-01-01}"), "config.a (2026-01-01): a date"),
        (("--cron", ""), "must be 5 fields"),
        (("--cron", "TZ=Nowhere 1 2 3 4 5"), "no time zone 'Nowhere'"),
    ],
)
def test_what_vertex_could_not_take_is_refused_before_any_request(
    vertex: Vertex, more: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    params = ("sources=gs://bucket/flights.csv", "label=late")
    assert submit("vertex", *more, params=params) == 2
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1
    assert not vertex.asked
