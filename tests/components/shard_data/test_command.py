"""`castell shard` as a command: its flags, its `--json`, its speed to help."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from components.shard_data import command
from components.shard_data.options import ShardOptions
from tests.components.shard_data.made import write
from trainer.errors import UsageError


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("castell shard")
    command.add_arguments(parser)
    return parser


def test_every_option_has_a_flag_with_help() -> None:
    actions = {action.dest: action for action in _parser()._actions}
    assert set(ShardOptions.model_fields) <= set(actions)
    assert all(action.help for action in actions.values())
    flags = (
        "split split-by shards layout block-rows seed null-value schema processes verify type "
        "drop label-kind drop-missing-label delimiter decimal thousands comment encoding "
        "skip-rows missing-columns max-bad-rows memory json output label"
    )
    shown = re.findall(r"--([a-z-]+)", _parser().format_help())
    assert set(flags.split()) <= set(shown)


def test_json_is_one_object_on_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "a.csv", "x,c,y\n" + "1,5,0\nNA,5,1\n" * 50)
    flags = [str(source), "--output", str(tmp_path / "out"), "--label", "y", "--null-value", "NA",
             "--shards", "2", "--json"]  # fmt: skip
    assert command.run(_parser().parse_args(flags)) == 0
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert told["rows"] == {"train": 80, "eval": 10, "test": 10}
    assert told["shards"] == {"train": 2, "eval": 2, "test": 2}
    assert told["label"]["kind"] == "binary"
    assert len(told["fingerprint"]) == 64
    assert told["dropped"] == []
    assert told["notes"] == ["column c has the same value in every row"]
    assert "read " in printed.err


def test_a_mistake_in_a_flag_is_a_usage_error(tmp_path: Path) -> None:
    flags = ["a.csv", "--output", str(tmp_path / "out"), "--label", "y", "--seed", "x"]
    with pytest.raises(UsageError, match=r"--seed \(x\)"):
        command.run(_parser().parse_args(flags))


def test_the_help_imports_nothing_heavy() -> None:
    code = (
        "import argparse, sys; from components.shard_data import command; "
        "command.add_arguments(argparse.ArgumentParser()); "
        "print([m for m in ('pyarrow', 'numpy', 'pydantic', 'tensorflow') if m in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.strip() == "[]"
