"""The `castell` command: light to start, one line for a user's mistake, a traceback for ours."""

import argparse
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines import cli
from trainer.errors import EXIT_INTERRUPTED, PeerLost

HEAVY = ("tensorflow", "keras", "kfp", "google.cloud", "tfx_bsl", "pyarrow", "sklearn")
LIGHT = [name for name in cli.COMMANDS if name != "train"]


def imported_by(code: str) -> set[str]:
    """Runs `code` in a new interpreter and returns the modules and packages that it imported."""
    script = f"""
import sys
before = set(sys.modules)
{code}
print(*(set(sys.modules) - before), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    modules = done.stderr.split()
    # `google.cloud` itself is there from the start, made by a .pth file.
    return {*modules, *(".".join(name.split(".")[:2]) for name in modules)}


def test_help_imports_nothing_heavy() -> None:
    modules = imported_by("from pipelines.cli import main; main(['--help'])")
    assert not modules & {*HEAVY, "numpy", "pydantic", "yaml"}
    assert not modules & {module for module, _ in cli.COMMANDS.values()}


def test_the_help_of_a_command_imports_nothing_heavy() -> None:
    helps = "\n".join(f"try: main([{name!r}, '--help'])\nexcept SystemExit: pass" for name in LIGHT)
    assert not imported_by(f"from pipelines.cli import main\n{helps}") & set(HEAVY)


def test_the_overview_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    words = {line.split()[0] for line in capsys.readouterr().out.splitlines() if line[:2] == "  "}
    assert words == set(cli.COMMANDS)


@pytest.mark.parametrize("name", LIGHT)
def test_every_command_is_a_command_module(name: str) -> None:
    module = importlib.import_module(cli.COMMANDS[name][0])
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    assert module.HELP
    assert callable(module.run)


def test_the_version_is_the_distribution_s(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("castell 0.")


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["comple"], "unknown command 'comple', did you mean 'compile'?"),
        (["compile", "train_evaluate_export"], "required: --output"),
        (["compile", "shard_data", "--outptu", "x.yaml"], "--outptu, did you mean '--output'?"),
        (["compile", "shard_dat", "--output", "x.yaml"], "did you mean 'shard_data'?"),
        (["run", "train_evaluate_exprt"], "did you mean 'train_evaluate_export'?"),
        (["run", "no-such.yaml"], "no-such.yaml: no such file"),
        (["run", "no\nsuch\x1b.yaml"], r"no\nsuch\x1b.yaml: no such file"),
        (["run", "train_evaluate_export", "--runner", "dokcer"], "did you mean 'docker'?"),
        (
            [
                "run",
                "train_evaluate_export",
                "--param",
                "sources=x.csv",
                "--param",
                "label=y",
                "--workdir",
                __file__,
            ],
            "--workdir",
        ),
        (["run", "train_evaluate_export"], "label and sources missing: --param label=VALUE"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(
    argv: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(argv) == 2
    out, err = capsys.readouterr()
    assert err.startswith("castell: error: ")
    assert err.count("\n") == 1
    assert says in err
    assert not out


@pytest.mark.parametrize(
    ("argv", "package", "extra"),
    [
        (["shard", "x.csv", "--output", "x", "--label", "y"], "pyarrow", "components"),
        (["compile", "shard_data", "--output", "x.yaml"], "kfp", "pipelines"),
    ],
)
def test_a_missing_extra_is_named(argv: list[str], package: str, extra: str) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; from pipelines.cli import main"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; sys.exit(main({argv}))"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    said = f"castell: error: castell {argv[0]} needs {package}: pip install 'castell[{extra}]'\n"
    assert (done.returncode, done.stderr) == (2, said)


def _command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str) -> None:
    (tmp_path / "a_command.py").write_text(
        f"HELP = 'x'\ndef add_arguments(parser): pass\ndef run(args):\n    {body}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "a_command", raising=False)
    monkeypatch.setitem(cli.COMMANDS, "a", ("a_command", "x"))


def test_an_expected_end_keeps_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _command(
        monkeypatch,
        tmp_path,
        "from trainer.errors import EXIT_INTERRUPTED, PeerLost; raise PeerLost('gone')",
    )
    assert cli.main(["a"]) == PeerLost.exit_code
    assert capsys.readouterr().err == "castell: error: gone\n"


def test_a_fault_of_ours_keeps_its_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _command(monkeypatch, tmp_path, "raise KeyError('ours')")
    with pytest.raises(KeyError, match="ours"):
        cli.main(["a"])


def test_an_interrupt_is_quiet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _command(monkeypatch, tmp_path, "raise KeyboardInterrupt")
    assert cli.main(["a"]) == EXIT_INTERRUPTED


def test_a_reader_who_leaves_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.cli", "--help"],
        stdout=write, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (cli.EXIT_BROKEN_PIPE, "")


@pytest.mark.parametrize(
    ("shell", "code", "says"),
    [
        ("--help >/dev/full", 1, "castell: error: stdout cannot be written: No space left"),
        ("run train_evaluate_export --params >/dev/full", 1, "stdout cannot be written"),
        (
            "run train_evaluate_export --param sources=absent --param label=y >/dev/full",
            2,
            "step shard-data failed: no such source: absent",
        ),
        ("--help >&-", 0, ""),
        ("--help 2>&-", 0, ""),
        ("nonsense 2>&-", 2, ""),
        ("nonsense >&-", 2, "unknown command"),
        ("nonsense… 2>/dev/full", 2, ""),
    ],
)
def test_a_stream_that_takes_nothing_is_no_traceback(
    shell: str, code: int, says: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        f"{sys.executable} -m pipelines.cli {shell}", shell=True, stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL, text=True, timeout=60, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == code
    assert says in done.stderr
    assert done.stderr.count("\n") <= 1


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "ascii:surrogateescape"])
def test_what_an_encoding_has_not_is_replaced(encoding: str) -> None:
    code = "from pipelines import cli; cli._prepare_streams(); print('▸ step …')"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == b"? step ?\n"


@pytest.mark.parametrize(
    "command", [("compile", "shard_data", "--output"), ("run",), ("submit", "--target", "kfp")]
)
def test_a_name_that_is_too_long_is_one_line(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*command, "x" * 300 + ".yaml"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
