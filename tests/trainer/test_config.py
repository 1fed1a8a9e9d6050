"""Configuration: flags over a file over defaults, and one line for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainer import config
from trainer.errors import UsageError
from trainer.tasks.tabular.options import TabularOptions

NEEDED = {"data": "d", "output": "o"}


def test_flags_win_over_the_file_and_task_keys_are_set_apart(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(
        "global_batch: 128\nlearning-rate: 0.1\nhidden: [8, 4]\noptions: {dropout: 0.5}\n"
    )
    loaded = config.load(str(file), {**NEEDED, "global_batch": "64"})
    assert (loaded.global_batch, loaded.learning_rate) == (64, 0.1)
    assert loaded.options == {"hidden": [8, 4], "dropout": 0.5}
    options = config.parse_options(TabularOptions, loaded.options)
    assert options.hidden == (8, 4)


def test_a_runs_own_config_is_a_configuration(tmp_path: Path) -> None:
    stored = config.load(None, {**NEEDED, "hidden": "8"})
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**stored.model_dump(mode="json"), "dataset_fingerprint": "0"}))
    assert config.load(str(file), {}) == stored


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"data": "d"}, "output is required: pass --output"),
        (
            {**NEEDED, "global_batch": "many"},
            "global_batch (many): input should be a valid integer",
        ),
        ({**NEEDED, "steps": "0"}, "steps (0): input should be greater than 0"),
        ({**NEEDED, "global_batch": 10, "microbatches": 3}, "microbatches (3) must divide"),
        ({**NEEDED, "batch_scaling": "linear"}, "batch_scaling (linear) needs base_batch"),
        ({**NEEDED, "optimizer": "adamm"}, "optimizer (adamm): input should be 'adamw'"),
        (
            {**NEEDED, "class_weights": "yes=2,no=1,yes=3"},
            "'yes' stands there twice: give each class one",
        ),
    ],
)
def test_wrong_values_are_named(flags: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as error:
        config.load(None, flags)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- a list", "expected `key: value` lines"),
        ("a: [", "is not YAML"),
        ("\tx: 1", "is not YAML"),
    ],
)
def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(UsageError) as error:
        config.load(str(file), NEEDED)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_key_suggests_the_near_one() -> None:
    loaded = config.load(None, {**NEEDED, "global_bach": "64"})
    with pytest.raises(
        UsageError, match="unknown config key 'global_bach', did you mean 'global_batch'"
    ):
        config.parse_options(TabularOptions, loaded.options)


@pytest.mark.parametrize(
    "flags",
    [
        {"epochs": "inf"},
        {"learning_rate": "1e400"},
        {"heartbeat_timeout_seconds": "1e23"},
        {"steps": "9" * 23},
        {"seed": str(2**32)},
        {"steps": True},
        {"steps": "x\ny"},
        {"steps": "x" * 10_000},
        {"options": "word"},
    ],
)
def test_no_value_is_out_of_reach_and_every_complaint_is_one_short_line(
    flags: dict[str, Any],
) -> None:
    with pytest.raises(UsageError) as refused:
        config.load(None, {**NEEDED, **flags})
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 250


@pytest.mark.parametrize(
    "content", ["options: 5", "options: [1]", "options: word", "steps: " + "9" * 5000, None]
)
def test_what_is_no_configuration_file_is_said(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "run.yaml"
    file.mkdir() if content is None else file.write_text(content)
    with pytest.raises(UsageError):
        config.load(str(file), NEEDED)


def test_a_key_of_the_trainer_inside_options_is_not_suggested_to_itself() -> None:
    with pytest.raises(UsageError, match="stands beside `options`"):
        config.parse_options(TabularOptions, {"steps": 4})


def test_a_pattern_keeps_its_brackets() -> None:
    loaded = config.load(None, {**NEEDED, "freeze": "model/embed_[01],model/x", "decay_at": ""})
    assert loaded.freeze == ("model/embed_[01]", "model/x")
    assert config.load(None, {**NEEDED, "freeze": "[a, b]"}).freeze == ("a", "b")
