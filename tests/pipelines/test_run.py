"""`castell run`: a local run is readable, and a failed step ends it by name."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kfp import compiler, dsl

from pipelines.cli import main
from pipelines.compile import compile_to
from pipelines.console import Console


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "table.csv"
    rows = "".join(f"{i},{i % 7},{i % 2}\n" for i in range(400))
    file.write_text("a,b,y\n" + rows)
    return file


def shard(table: Path, tmp_path: Path, *more: str) -> list[str]:
    """`castell run` of the one step that needs no TensorFlow."""
    file = tmp_path / "shard_data.yaml"
    compile_to(str(file), "shard_data")
    params = [f"sources={table}", "label=y", *more]
    argv = ["run", str(file), "--workdir", str(tmp_path / "runs")]
    return argv + [word for param in params for word in ("--param", param)]


@pytest.mark.timeout(120)
def test_a_run_says_what_it_does_and_where_it_leaves_it(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(shard(table, tmp_path, "options={block_rows: 64}")) == 0
    out = capsys.readouterr().out
    assert "▸ shard-data" in out
    assert "done after" in out
    assert "KFP Executor" not in out
    assert "executorInput" not in out
    (manifest,) = (tmp_path / "runs").glob("shard-data-*/shard-data/dataset/manifest.json")
    assert f"artifacts: {manifest.parents[2]}" in out


@pytest.mark.timeout(120)
def test_a_failed_step_is_named_with_its_error(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(shard(tmp_path / "absent.csv", tmp_path)) == 2
    out, err = capsys.readouterr()
    assert err.startswith("castell: error: step shard-data failed: ")
    assert "absent.csv" in err
    assert err.count("\n") == 1
    assert "Traceback" not in out


@pytest.mark.timeout(120)
def test_a_step_s_own_command_is_named_if_it_takes_artifacts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "train_model.yaml"
    compile_to(str(file), "train_model")
    assert main(["run", str(file), "--workdir", str(tmp_path)]) == 2
    assert "takes artifacts (dataset)" in capsys.readouterr().err


def test_parameters_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "train_evaluate_export", "--params"]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert "[required] the column that is to be learned" in lines["label"]
    assert "mapping" in lines["config"]


def test_a_threshold_that_is_no_rule_is_refused_before_anything_runs(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["run", "train_evaluate_export", "--workdir", str(tmp_path / "runs")]
    for param in (f"sources={table}", "label=y", "thresholds=auc is good"):
        argv += ["--param", param]
    assert main(argv) == 2
    assert "'auc is good' is not a rule" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_file_that_is_no_pipeline_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.yaml"
    for content in ("a: 1\n", "just text\n", "{", ""):
        file.write_text(content)
        assert main(["run", str(file)]) == 2
        assert capsys.readouterr().err == f"castell: error: {file} is not a compiled pipeline\n"


def test_what_a_console_shows_is_what_the_step_says() -> None:
    console = Console(terminal := io.StringIO(), "/runs")
    console.write(
        "07:00:00.000 - INFO - Running pipeline: 'x'\n"
        "--------------------------------\n"
        "07:00:00.000 - INFO - Executing task \x1b[96m'train-model'\x1b[0m\n"
        "07:00:00.001 - INFO - Streamed logs:\n\n"
        "    [KFP Executor 2026-01-01 07:00:00,001 INFO]: Got executor_input:\n"
        '    {\n        "inputs": {\n        }\n    }\n'
        "    I0000 00:00:1796024308.822405    6881 cudart_stub.cc:31] no GPU\n"
        "    step 1/2 into /runs/x-2026/train-model/run\n"
    )
    console.write("    - not a rule\n    st")
    console.write("ep 2/2; next: castell evaluate --run train-model/run\n\n\n")
    console.write("07:00:09.000 - INFO - Task 'train-model' finished with status SUCCESS\n")
    console.write("07:00:09.000 - INFO - Task 'train-model' outputs:\n    run: Model( name='run',")
    console.write("\n                uri='/runs/x-2026/train-model/run',\n----------------\n")
    shown = terminal.getvalue().splitlines()
    assert shown[:4] == [
        "▸ train-model", "    step 1/2 into train-model/run", "    - not a rule", "    step 2/2",
    ]  # fmt: skip
    assert shown[4].startswith("    done after ")
    assert len(shown) == 5


def test_the_last_words_of_a_step_are_its_error() -> None:
    console = Console(io.StringIO(), "/runs")
    console.write("07:00:00.000 - INFO - Executing task 'train-model'\n")
    console.write("    castell: error: --epochs (0): must be above 0\n    more\n")
    assert console.steps == ["train-model"]
    assert console.error == "castell: error: --epochs (0): must be above 0"


def test_an_environment_without_docker_is_enough(table: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "docker.py").write_text("raise ImportError('no docker here')\n")
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.cli", *shard(table, tmp_path)],
        env={**os.environ, "PATH": path, "PYTHONPATH": str(blocked), "DOCKER_HOST": "unix:///x"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@dsl.component(base_image="python", install_kfp_package=False)
def sleeper() -> None:
    import os
    import time

    print(f"process {os.getpid()}", flush=True)
    time.sleep(100)


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.timeout(90)
def test_a_stop_reaches_the_step(tmp_path: Path) -> None:
    file = tmp_path / "sleeper.yaml"
    compiler.Compiler().compile(sleeper, str(file))
    command = ["-m", "pipelines.cli", "run", str(file), "--workdir", str(tmp_path / "runs")]
    running = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    step = next(int(line.split()[1]) for line in running.stdout if "process" in line)
    running.send_signal(signal.SIGTERM)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 143
    assert err.startswith("castell: error: told to stop in step sleeper")
    assert not is_running(step)
