"""`python -m trainer` and a user's mistakes: one line, exit code 2, before TensorFlow is there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.datasets import make_dataset
from trainer.__main__ import main


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_dataset(tmp_path_factory.mktemp("data"), rows=500, shards=4).path


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(list(argv)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("castell: error: ")
    return line


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--task", "tabuler"], "unknown task 'tabuler', did you mean 'tabular'"),
        (["--global-bach", "64"], "unknown config key 'global_bach', did you mean 'global_batch'"),
        (["--hiden", "64"], "unknown config key 'hiden', did you mean 'hidden'"),
        (["--hidden", "0"], "hidden.0 (0): input should be greater than 0"),
        (["--cpu-replicas", "8"], "shards (4) < replicas (8): re-shard with --shards >= 8"),
        (
            ["--cpu-replicas", "3", "--global-batch", "96"],
            "do not divide lanes (4): pass --lanes 3",
        ),
        (["--microbatches", "64", "--cpu-replicas", "2", "--global-batch", "64"], "microbatches"),
        (["--steps"], "--steps"),
        (["--lr", "1", "--config", "none.yaml"], "--config none.yaml: no such file"),
        (["stray"], "unexpected argument: stray"),
        (["--max-restarts", "2"], "--max-restarts (2) needs --workers"),
        (["--max-restarts", "-1", "--workers", "2"], "--max-restarts (-1) must be at least 0"),
    ],
)
def test_wrong_flags(
    capsys: pytest.CaptureFixture[str], data: str, tmp_path: Path, argv: list[str], words: str
) -> None:
    output = tmp_path / "run"
    assert words in refused(capsys, "--data", data, "--output", str(output), *argv)
    assert not output.exists()


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("TF_CONFIG", "{oops", "TF_CONFIG"),
        ("TF_CONFIG", json.dumps({"cluster": {"worker": ["a:1", "b:1"]}}), "task"),
        (
            "TF_CONFIG",
            json.dumps({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 3}}),
            "3",
        ),
        ("CLUSTER_SPEC", "[]", "CLUSTER_SPEC"),
    ],
)
def test_wrong_clusters(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    data: str,
    tmp_path: Path,
    variable: str,
    value: str,
    words: str,
) -> None:
    monkeypatch.setenv(variable, value)
    assert words in refused(capsys, "--data", data, "--output", str(tmp_path / "run"))


def test_an_altered_shard_is_named_before_training(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made = make_dataset(tmp_path / "data", rows=500, shards=4)
    shard = tmp_path / "data" / made.split("train").shards[2].path
    shard.write_bytes(shard.read_bytes()[:-16])
    argv = ("--data", made.path, "--output", str(tmp_path / "run"))
    assert "00002-of-00004.tfrecord" in refused(capsys, *argv)
    assert not (tmp_path / "run").exists()


def test_another_runs_directory_is_refused_and_says_what_differs(
    capsys: pytest.CaptureFixture[str], data: str, tmp_path: Path
) -> None:
    from trainer.cluster.resolve import resolve
    from trainer.config import RESUMABLE_KEYS, load
    from trainer.plan import make_plan
    from trainer.run.directory import RunDirectory

    output = tmp_path / "run"
    argv = {"data": data, "output": str(output), "seed": "1"}
    plan = make_plan(load(None, argv), resolve({}))
    RunDirectory(str(output)).start(plan.stored, RESUMABLE_KEYS)
    (output / "checkpoints" / "step-00000010").mkdir()
    line = refused(capsys, "--data", data, "--output", str(output), "--seed", "2")
    assert "seed is 1 there and 2 now" in line
    assert "choose another --output" in line


def test_help_and_errors_need_no_tensorflow(tmp_path: Path) -> None:
    code = (
        "import sys; from trainer.__main__ import main\n"
        "main(['--data', 'nowhere', '--output', 'x'])\n"
        "heavy = {'tensorflow', 'keras', 'kfp', 'tfx_bsl', 'pyarrow'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "nowhere is not a dataset directory" in done.stderr


def shown_help(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    with pytest.raises(SystemExit) as left:
        main([*argv, "--help"])
    assert left.value.code == 0
    return capsys.readouterr().out


def test_help_lists_the_keys_of_the_built_in_tasks_and_their_metrics(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = shown_help(capsys)
    assert "  --hidden N,…                   widths of the hidden layers [256,128]\n" in shown
    assert "  --flip on|off                  augmentation: mirror" in shown
    assert "--scaling range|standardized" in shown
    assert "binary: auc, accuracy" in shown


def test_help_lists_the_keys_of_the_task_that_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    shown = shown_help(capsys, "--task=trainer.examples.policy_gradient:CartPole")
    assert "the keys of trainer.examples.policy_gradient:CartPole:\n  --ticks N " in shown
    assert "the text task" not in shown


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("broken:Mine", "--task broken:Mine cannot be imported (ZeroDivisionError: division by"),
        ("nowhere:Mine", "--task nowhere:Mine: there is no module 'nowhere' on the path"),
        ("mistyped", "unknown task 'mistyped'"),
    ],
)
def test_help_comes_even_if_the_task_cannot_be_imported(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    task: str,
    words: str,
) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    (line,) = [
        line
        for line in shown_help(capsys, "--task", task).splitlines()
        if line.startswith("no keys of your task: ")
    ]
    assert words in line


def test_a_parameter_server_has_nothing_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, data: str, tmp_path: Path
) -> None:
    cluster: dict[str, Any] = {"cluster": {"chief": ["a:1"], "ps": ["b:1"]}}
    monkeypatch.setenv("TF_CONFIG", json.dumps({**cluster, "task": {"type": "ps", "index": 0}}))
    assert main(["--data", data, "--output", str(tmp_path / "run")]) == 0
    assert "does not train" in capsys.readouterr().err
