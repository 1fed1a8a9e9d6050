"""infra/kubernetes/up.sh: what it says, and which programs it runs in which order.

kind cannot run where the tests do; programs that only note how they were called stand in for it.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "infra" / "kubernetes" / "up.sh"
RECORDER = """#!/bin/sh
echo "$(basename "$0") $*" >> "$CALLS"
case "$*" in
  "get clusters") cat "$CLUSTERS" ;;
  "get nodes"*) cat "$NODES" ;;
  "port here-control-plane 30080") echo "$PORT" ;;
esac
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the file in which docker, kind, kubectl and git note how they were called."""
    for name in ("docker", "kind", "kubectl", "git"):
        (tmp_path / name).write_text(RECORDER)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "clusters").touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("CLUSTERS", str(tmp_path / "clusters"))
    (tmp_path / "nodes").write_text("here-control-plane\nhere-worker\nhere-worker2\n")
    monkeypatch.setenv("NODES", str(tmp_path / "nodes"))
    monkeypatch.setenv("PORT", "127.0.0.1:8080")
    return tmp_path / "calls"


def script(*arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environ = dict(os.environ) if path is None else {**os.environ, "PATH": path}
    return subprocess.run(
        ["/bin/bash", SCRIPT, *arguments],
        capture_output=True, text=True, check=False, timeout=30, env=environ,
    )  # fmt: skip


def test_the_script_is_sound_and_its_help_teaches() -> None:
    subprocess.run(["/bin/bash", "-n", SCRIPT], check=True, timeout=30)
    done = script("--help")
    assert done.returncode == 0
    for word in ("--image", "--cluster", "--down", "docker", "kind", "kubectl", "castell:0.1.0"):
        assert word in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--imag", "x"], "--imag: no such option"), (["--image"], "--image needs a value")],
)
def test_the_script_refuses_what_it_does_not_know(arguments: list[str], said: str) -> None:
    done = script(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_script_says_what_is_missing_and_where_to_get_it(tmp_path: Path) -> None:
    (tmp_path / "dirname").symlink_to("/usr/bin/dirname")
    (tmp_path / "docker").write_text("#!/bin/sh\n")
    (tmp_path / "docker").chmod(0o755)
    done = script(path=str(tmp_path))
    assert done.returncode == 2
    assert "kind is not there: install it, https://kind.sigs.k8s.io" in done.stderr


def test_a_cluster_is_made_filled_and_waited_for(calls: Path) -> None:
    done = script("--cluster", "here", "--image", "mine:1")
    assert done.returncode == 0, done.stderr
    steps = calls.read_text().splitlines()
    began = [
        "kind create cluster --name here",
        "kind load docker-image mine:1 --name here --nodes here-worker,here-worker2",
        "kubectl --context kind-here apply -k https://github.com/kubeflow/pipelines//",
        "kubectl --context kind-here wait crd/applications.app.k8s.io",
        f"kubectl --context kind-here apply -k {SCRIPT.parent / 'local'}",
        "kubectl --context kind-here wait deployment --all --namespace kubeflow",
    ]
    places = [next(i for i, step in enumerate(steps) if step.startswith(begin)) for begin in began]
    assert places == sorted(places)
    assert "castell submit" in done.stdout
    assert "--target kfp --host http://localhost:8080 --image mine:1" in done.stdout


def test_a_cluster_that_is_there_is_not_made_again(calls: Path) -> None:
    (calls.parent / "clusters").write_text("here\n")
    assert script("--cluster", "here").returncode == 0
    assert "create cluster" not in calls.read_text()
    assert "kind load docker-image castell:0.1.0 --name here" in calls.read_text()


def test_a_cluster_of_one_node_gets_the_image_there(
    calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (calls.parent / "clusters").write_text("here\n")
    (calls.parent / "nodes").write_text("here-control-plane\n")
    done = script("--cluster", "here")
    assert done.returncode == 0, done.stderr
    assert "port-forward" not in done.stderr
    loaded = "kind load docker-image castell:0.1.0 --name here --nodes here-control-plane\n"
    assert loaded in calls.read_text()
    monkeypatch.setenv("PORT", "")
    assert "port-forward service/ml-pipeline-ui 8080:80" in script("--cluster", "here").stderr


def test_down_deletes_the_cluster_and_does_nothing_else(calls: Path) -> None:
    assert script("--down", "--cluster", "here").returncode == 0
    assert calls.read_text().splitlines() == ["docker info", "kind delete cluster --name here"]
