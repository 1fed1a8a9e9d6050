"""What the KFP faces share: where artifacts are, whole numbers, ends in one line."""

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from components.steps import local_output, location, one_line_ends, whole_numbers
from trainer.errors import PeerLost, UsageError


@dataclass
class Artifact:
    uri: str
    path: str
    metadata: dict[str, Any] = field(default_factory=dict)


def test_numbers_that_kfp_made_floats_are_whole_again() -> None:
    given = {"global_batch": 256.0, "hidden": [64.0, 8.5], "on": True, "name": "x", "none": None}
    assert repr(whole_numbers(given)) == (
        "{'global_batch': 256, 'hidden': [64, 8.5], 'on': True, 'name': 'x', 'none': None}"
    )


def test_a_store_that_the_launcher_copies_is_used_by_path() -> None:
    assert location(Artifact("minio://bucket/run", "/minio/bucket/run")) == "/minio/bucket/run"
    assert location(Artifact("/here/run", "/here/run")) == "/here/run"


def test_a_local_output_is_written_in_place(tmp_path: Path) -> None:
    path = str(tmp_path / "out")
    with local_output(Artifact(path, path)) as output:
        assert output == path


@pytest.mark.parametrize("error", [UsageError, PeerLost])
def test_a_step_ends_with_the_error_s_line_and_code(
    error: type[UsageError], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end, one_line_ends():
        raise error("what to do")
    assert end.value.code == error.exit_code
    assert capsys.readouterr().err == "castell: error: what to do\n"


def test_a_fault_of_ours_goes_through_a_step() -> None:
    with pytest.raises(KeyError), one_line_ends():
        raise KeyError("ours")


def test_the_faces_need_nothing_but_kfp_to_be_imported() -> None:
    code = """
import sys
from components.shard_data.component import shard_data
from components.validate_data.component import validate_data
from components.train_model.component import train_model
from components.evaluate_model.component import evaluate_model
from components.export_model.component import export_model
print(*{"tensorflow", "pyarrow", "sklearn", "matplotlib", "pydantic"} & set(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "\n"
