import argparse
import json
import socket
from typing import Any

import pytest

from trainer.cluster import doctor
from trainer.cluster.local import free_ports
from trainer.errors import UsageError


def examine(capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[dict[str, Any], str]:
    """Returns what `castell doctor --json` printed, and its error."""
    parser = argparse.ArgumentParser()
    doctor.add_arguments(parser)
    error = ""
    try:
        assert doctor.run(parser.parse_args(["--json", *flags])) == 0
    except UsageError as caught:
        error = str(caught)
    return json.loads(capsys.readouterr().out), error


def tf_config(*workers: str, kind: str = "worker", index: int = 0) -> str:
    cluster = {"worker": list(workers)}
    return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})


def test_a_process_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    found, error = examine(capsys)
    assert found == {
        "cluster": {},
        "task": {"type": "chief", "index": 0},
        "strategy": "one_device",
        "reason": "one process (this machine), one CPU",
        "source": "this machine",
        "problems": [],
    }
    assert error == ""
    assert examine(capsys, "--cpu-replicas", "2")[0]["strategy"] == "mirrored"
    assert examine(capsys, "--workers", "2")[0]["strategy"] == "multi_worker"


def test_a_cluster_in_its_canonical_form(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_CONFIG", tf_config("a:1", "b:1", index=1))
    found, _ = examine(capsys)
    assert found["cluster"] == {"chief": ["a:1"], "worker": ["b:1"]}
    assert found["task"] == {"type": "worker", "index": 0}
    assert (found["strategy"], found["source"]) == ("multi_worker", "TF_CONFIG")
    assert "worker 0 is the chief" in found["reason"]
    assert examine(capsys, "--alone")[0]["cluster"] == {}


def test_a_problem_is_printed_and_is_the_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_CONFIG", "{broken")
    found, error = examine(capsys)
    assert found["problems"] == [error]
    assert (found["cluster"], found["strategy"]) == (None, None)
    monkeypatch.setenv("TF_CONFIG", tf_config("a:1", "b:1"))
    found, error = examine(capsys, "--strategy", "one_device")
    assert "names 2 workers" in error
    assert found["cluster"] == {"chief": ["a:1"], "worker": ["b:1"]}


def test_a_parameter_server_has_no_strategy_and_no_problem(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_CONFIG", tf_config("a:1", "b:1", kind="ps"))
    found, error = examine(capsys)
    assert (found["strategy"], found["problems"], error) == (None, [], "")


def test_unreachable_peers_are_problems_only_when_probed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody, own = free_ports(2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = server.getsockname()[1]
        peers = [f"127.0.0.1:{port}" for port in (here, own, nobody)]
        monkeypatch.setenv("TF_CONFIG", tf_config(*peers, index=1))
        assert examine(capsys)[0]["problems"] == []
        found, error = examine(capsys, "--probe")
    assert found["problems"] == [f"rank 2 ({peers[2]}) cannot be reached: Connection refused"]
    assert error == found["problems"][0]


def test_the_doctor_reads_well(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    doctor.add_arguments(parser)
    doctor.run(parser.parse_args(["--alone"]))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "cluster", "task", "strategy", "reason", "source",
    ]  # fmt: skip
