"""Where a run is: what a command says of it, takes for it, and keeps to itself."""

import json
import re
from pathlib import Path

import pytest

from components.train_model.kubernetes.options import JobOptions
from pipelines.cli import main
from pipelines.compile import compile_to
from tests.doubles.kfp import Kfp, new_id
from tests.doubles.vertex import Vertex, task
from tests.pipelines.submit.calls import castell, submit

GIVEN = ("--param", "sources=gs://b/x", "--param", "label=y")


@pytest.mark.parametrize(("compiled", "other"), [("kfp", "vertex"), ("vertex", "kfp")])
def test_a_file_for_another_target_is_refused(
    compiled: str, other: str, kfp: Kfp, vertex: Vertex, capsys: pytest.CaptureFixture[str]
) -> None:
    compile_to("x.yaml", "train_evaluate_export", target=compiled)
    assert castell("submit", "x.yaml", "--target", other, *GIVEN) == 2
    assert castell("run", "x.yaml", *GIVEN) == 2
    err = capsys.readouterr().err
    assert f"compiled for target {compiled}: compile it with --target {other}" in err
    assert f"compiled for target {compiled}: compile it with --target local" in err
    assert not [*kfp.asked, *vertex.asked]
    assert castell("submit", "x.yaml", "--target", compiled, *GIVEN) == 0


@pytest.mark.parametrize(
    "image", ["", "Castell:1", "a b", "REGISTRY/castell:1", "x@sha256:0", "https://r.example/x"]
)
def test_an_image_that_is_none_is_refused(
    image: str, kfp: Kfp, capsys: pytest.CaptureFixture[str]
) -> None:
    assert submit("kfp", "--image", image) == 2
    command = ("compile", "train_evaluate_export", "--output", "y.yaml", "--image", image)
    assert main([*command]) == 2
    assert capsys.readouterr().err.count(f"image ({image}): no image reference") == 2
    assert not kfp.asked
    assert not Path("y.yaml").exists()


@pytest.mark.parametrize(
    ("target", "flags", "says"),
    [
        ("kfp", ("--image", "castell:0.1.0"), "castell:0.1.0 names no registry"),
        ("vertex", ("--image", "mine/castell:0.1.0"), "mine/castell:0.1.0 names no registry"),
        (
            "kfp",
            ("--image", "r.example/castell:0.1.0", "--accelerator", "nvidia.com/gpu"),
            "nvidia.com/gpu is asked for: take r.example/castell:0.1.0-gpu",
        ),
        (
            "vertex",
            (
                "--image", "r.example/castell:0.1.0", "--machine-type", "g2-standard-8",
                "--accelerator-type", "NVIDIA_L4",
            ),
            "NVIDIA_L4 is asked for: take r.example/castell:0.1.0-gpu",
        ),
        ("vertex", ("--image", "r.example/castell:0.1.0-gpu"), ""),
    ],
)  # fmt: skip
def test_an_odd_image_is_told_once(
    target: str, flags: tuple[str, ...], says: str, kfp: Kfp, vertex: Vertex,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    command = ("compile", "train_evaluate_export", "--output", "y.yaml", "--target", target)
    assert main([*command, *flags]) == 0
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == bool(says)


def test_nothing_is_shown_without_a_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert submit("kfp", "--show") == 2
    out, err = capsys.readouterr()
    assert "host (): must be the address" in err
    assert not out


def test_a_schedule_notes_no_experiment(vertex: Vertex, capsys: pytest.CaptureFixture[str]) -> None:
    for more in ((), ("--show",)):
        assert submit("vertex", "--cron", "30 2 * * *", "--experiment", "flights", *more) == 0
        err = capsys.readouterr().err
        assert "experiment flights: runs of a schedule are not noted there" in err
        assert "looked up" not in err


def test_the_next_command_finds_the_run(
    kfp: Kfp, vertex: Vertex, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my settings.yaml").write_text("kfp: {}\n")
    submit("kfp")
    given = ("--host", kfp.address, "--token", "SECRET", "--settings", "my settings.yaml")
    assert castell("cancel", new_id(100), *given) == 0
    out = capsys.readouterr().out
    assert f"--target kfp --settings 'my settings.yaml' --host {kfp.address}` tells" in out
    assert "SECRET" not in out

    def stopped(self: object, run_id: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pipelines.submit.vertex.VertexPlatform.run", stopped)
    assert submit("vertex", "--project", "other", "--wait") == 130
    assert "--target vertex --project other --wait` follows" in capsys.readouterr().err


def test_a_run_elsewhere_is_looked_for_there(
    vertex: Vertex, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pipelines.submit.vertex import VertexPlatform

    Path("castell.yaml").write_text("vertex: {fallbacks: [{location: europe-west4}]}\n")
    vertex.script = [
        {"state": "FAILED", "tasks": [task("train-model", "FAILED", error="quota exceeded")]}
    ]
    look = VertexPlatform.run

    def run(self: VertexPlatform, run_id: str) -> object:
        if len(vertex.sent("POST", "/pipelineJobs")) > 1:
            raise KeyboardInterrupt
        return look(self, run_id)

    monkeypatch.setattr(VertexPlatform, "run", run)
    assert submit("vertex", "--wait", "--poll-seconds", "0.01") == 130
    assert "--target vertex --location europe-west4 --wait`" in capsys.readouterr().err


def test_every_region_is_known_before_anything_is_sent(
    vertex: Vertex, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("castell.yaml").write_text("vertex: {fallbacks: [{location: europe-wets4}]}\n")
    assert submit("vertex", "--wait") == 2
    assert "location (europe-wets4): no region of Vertex AI, did you" in capsys.readouterr().err
    assert not vertex.asked


def test_a_password_is_not_printed(kfp: Kfp, capsys: pytest.CaptureFixture[str]) -> None:
    host = kfp.address.replace("//", "//me:HUSH@")
    submit("kfp", "--host", host)
    submit("kfp", "--host", host, "--show")
    castell("status", new_id(7), "--host", host)
    castell("cancel", new_id(100), "--host", host)
    castell("status", new_id(7), "--host", "http://me:HUSH@127.0.0.1:9")
    castell("status", new_id(7), "--host", "me:HUSH@127.0.0.1:9")
    castell("status", "run", "--project", "p", "--api-endpoint", "http://me:HUSH@127.0.0.1:9")
    out, err = capsys.readouterr()
    assert "HUSH" not in out + err
    assert re.search(rf"{kfp.address}/#/runs", out)


def test_certificates(kfp: Kfp, capsys: pytest.CaptureFixture[str]) -> None:
    submit("kfp")
    capsys.readouterr()
    assert castell("status", new_id(100), "--verify-tls", "false") == 0
    assert capsys.readouterr().err == "castell: verify_tls is off: anybody may answer for KFP\n"
    Path("ca.pem").write_text("no certificate")
    for file, reason in (("none.pem", "No such file"), ("ca.pem", "no certificate")):
        assert castell("status", new_id(100), "--tls-ca", file) == 2
        assert f"tls_ca ({file}): {reason}" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["status", "logs", "cancel"])
def test_a_run_has_no_machine_to_be_set(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        castell(command, "--help")
    out = capsys.readouterr().out
    assert {"--host", "--project", "--token"} <= set(out.split())
    assert "--machine-type" not in out
    assert castell(command, "a-run", "--machine-type", "n1-standard-4") == 2
    assert "unknown option --machine-type" in capsys.readouterr().err


def test_traffic_that_stays_is_told(vertex: Vertex, capsys: pytest.CaptureFixture[str]) -> None:
    name = "projects/a-project/locations/us-central1/endpoints/1"
    model = "projects/a-project/locations/us-central1/models/1"
    vertex.resources[name] = {
        "name": name, "displayName": "late", "trafficSplit": {"1": 100},
        "deployedModels": [{"id": "1", "createTime": "2026-01-01T00:00:01Z", "model": model}],
    }  # fmt: skip
    assert castell("traffic", "late", "--percent", "100") == 0
    assert "nothing has changed" in capsys.readouterr().err
    assert castell("traffic", "late", "--undeploy-idle") == 2
    assert "--undeploy-idle: goes with --percent or --rollback" in capsys.readouterr().err


def test_a_service_s_variables_are_no_settings(
    kfp: Kfp, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_80_TCP_ADDR"):
        monkeypatch.setenv(f"CASTELL_KFP_{name}", "10.0.0.1")
    assert submit("kfp") == 0
    assert not capsys.readouterr().err


def test_numbers_of_yaml_are_quantities(kfp: Kfp, capsys: pytest.CaptureFixture[str]) -> None:
    Path("castell.yaml").write_text("kfp: {cpu: 2, memory: 8000000000, scratch: 1Gi}\n")
    assert submit("kfp", "--show") == 0
    assert "8000000000" in json.dumps(capsys.readouterr().out)
    for content, says in (
        ("memory: 4", "kfp.memory (4): is 4 bytes: give it a unit, such as 4Gi"),
        ("pipeline_root: 'gs://'", "kfp.pipeline_root (gs://): string should match"),
        ("accelerators: 999", "kfp.accelerators (999): input should be less"),
        ("accelerator: NVIDIA_L4", "kfp.accelerator (NVIDIA_L4): string should match"),
        ("scratch: big", "kfp.scratch (big): must be a number and a unit"),
        ("namespace: 12", "kfp.namespace (12): input should be a valid string: quote it"),
    ):
        Path("castell.yaml").write_text(f"kfp: {{{content}}}\n")
        assert submit("kfp") == 2
        assert says in capsys.readouterr().err


@pytest.mark.parametrize("scratch", ["4", "ten", ""])
def test_a_scratch_that_is_none(scratch: str) -> None:
    with pytest.raises(ValueError, match="such as 4Gi"):
        JobOptions(scratch=scratch)
