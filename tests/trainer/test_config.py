"""Configuration: flags over a file over defaults, and one line for what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from trainer import config
from trainer.errors import UsageError
from trainer.tasks.image.options import ImageOptions
from trainer.tasks.tabular.options import TabularOptions
from trainer.tasks.text.options import TextOptions

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
        {"loss_scale_growth_steps": "9" * 23},
        {"initial_loss_scale": "1e300"},
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


def refused(file: Path, text: str) -> str:
    """What a configuration file of this text is refused with, the Task's options included."""
    file.write_text(text)
    flags = {key: value for key, value in NEEDED.items() if f"{key}:" not in text}
    with pytest.raises(UsageError) as error:
        config.parse_options(TabularOptions, config.load(str(file), flags).options)
    assert len(str(error.value)) < 250
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("steps: 5\nsteps: 7\n", "'steps' stands there twice, the second time in line 2: keep one"),
        ("steps: 5\n'steps': 7\n", "'steps' stands there twice"),
        ('{"steps": 5, "steps": 5}', "'steps' stands there twice"),
        ("class_weights:\n  yes: 1\n  yes: 2\n", "'yes' stands there twice"),
        ("options:\n  hidden: 8\nhidden: 9\n", "options.hidden and hidden are the same key"),
        ("embedding-size: 8\noptions: {embedding_size: 9}\n", "are the same key: keep one"),
        ("options: {embedding-size: 8, embedding_size: 9}\n", "are the same key: keep one"),
    ],
)
def test_a_key_that_stands_twice_is_refused(tmp_path: Path, text: str, words: str) -> None:
    assert words in refused(tmp_path / "run.yaml", text)


def test_a_merged_mapping_is_overwritten_as_yaml_has_it(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("options: &few {hidden: 8}\nclass_weights: {<<: {a: 1, b: 2}, b: 3}\n")
    assert config.load(str(file), NEEDED).class_weights == {"a": 1, "b": 3}


def test_flags_win_over_options_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("options: {embedding-size: 8}\n")
    assert config.load(str(file), {**NEEDED, "embedding_size": "9"}).options == {
        "embedding_size": "9"
    }


def test_classes_are_called_as_they_are_written(tmp_path: Path) -> None:
    """YAML 1.1 takes no, on, 010 and 2020-01-01 for something else than what stands there."""
    file = tmp_path / "run.yaml"
    file.write_text("class_weights: {no: 1, on: 5, 010: 2, 2020-01-01: 3, ~: 4}\n")
    weights = config.load(str(file), NEEDED).class_weights
    assert weights == {"no": 1, "on": 5, "010": 2, "2020-01-01": 3, "~": 4}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("class_weights: {no: .inf}", "class_weights.no (inf): input should be a finite number"),
        ("class_weights: {no: -1}", "class_weights.no (-1): input should be greater than or"),
        ("class_weights: 5", "class_weights (5): input should be a valid dictionary"),
        ("class_weights: balance", "class_weights (balance): give each class its weight, as no=1"),
        ("steps: true", "steps (True): this key takes no true or false"),
        ("label: yes", "label (True): YAML takes a bare yes, no, on or off for true or false"),
        ("ignore: [a, no]", "ignore.1 (False): YAML takes a bare yes, no, on or off for true"),
        ("hidden: true", "hidden (True): this key takes no true or false"),
        ("hidden: [8, yes]", "hidden.1 (True): this key takes no true or false"),
        ("embedding_size: true", "embedding_size (True): this key takes no true or false"),
        ("decay_at: [yes]\nschedule: step", "decay_at.0 (True): this key takes no true or false"),
        ("output:", "output is empty: give it a value, or leave the line out"),
        ("data:", "data is empty: give it a value, or leave the line out"),
        ("hidden: [8, ~]", "hidden.1 is empty: give it a value, or leave the line out"),
        ("steps: 5\nglobal_batch: null", "global_batch is empty: give it a value"),
        ('output: "a\\0b"', "output ('a\\x00b'): names are UTF-8 without NUL"),
        ('output: "a\\ud800b"', "output ('a\\ud800b'): names are UTF-8 without NUL"),
        ('schema_file: "a\\0b"', "schema_file ('a\\x00b'): names are UTF-8 without NUL"),
        ('actions: ["a\\0b:c"]', "actions ('a\\x00b:c'): names are UTF-8 without NUL"),
        ("a: " + "[" * 2000 + "]" * 2000, "is nested too deeply"),
        ("a: " + "{b: " * 2000 + "}" * 2000, "is nested too deeply"),
        ("cache_gigabytes: 1e300", "cache_gigabytes (1e300): input should be less than"),
        ("hidden: 9999999999999999999999", "hidden.0 (9999999999999999999999): input should be "),
        ("embedding_size: 100000000", "embedding_size (100000000): input should be less than"),
    ],
)
def test_what_a_file_has_is_refused_in_the_users_words(
    tmp_path: Path, text: str, words: str
) -> None:
    assert words in refused(tmp_path / "run.yaml", text)


@pytest.mark.parametrize("task", [TabularOptions, TextOptions, ImageOptions])
def test_no_number_of_a_task_is_without_bound_and_none_is_a_truth_value(task: Any) -> None:
    def numbers(annotation: Any) -> bool:
        return annotation is int or any(map(numbers, getattr(annotation, "__args__", ())))

    sizes = [n for n, field in task.model_fields.items() if numbers(field.annotation)]
    assert sizes
    for value in (10**30, "9" * 5000, True):
        for name in sizes:
            with pytest.raises(UsageError, match=name):
                config.parse_options(task, {name: value})


class Own(BaseModel):
    """What a user's Task may ask for."""

    flag: bool = False
    either: bool | int = 0
    word: Literal[True, "some"] = "some"
    switch: Literal["on", "off"] = "off"
    anything: Any = None
    per_class: dict[str, bool] = {}
    count: int | None = None


def test_true_and_false_are_taken_where_a_task_asks_for_them() -> None:
    names = [name for name in Own.model_fields if name not in ("per_class", "count")]
    given = dict.fromkeys(names, True)
    read = config.parse_options(Own, {**given, "per_class": {"a": True}, "count": None})
    assert (read.flag, read.either, read.word, read.anything) == (True,) * 4
    assert read.switch == "on"
    assert read.per_class == {"a": True}
    with pytest.raises(UsageError, match=r"count \(False\): this key takes no true or false"):
        config.parse_options(Own, {"count": False})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"steps": 5}, r"r/config.json is damaged \(output is missing\): choose another run"),
        ({**NEEDED, "steps": -1}, r"r/config.json is damaged \(steps \(-1\): input should be"),
        ({**NEEDED, "options": 5}, r"damaged \(options \(5\): input should be a valid dictionary"),
    ],
)
def test_a_run_whose_configuration_is_none_is_refused(content: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        config.stored(content, "r/config.json")


def test_a_run_of_another_version_is_read_by_the_keys_that_are_known() -> None:
    assert config.stored({**NEEDED, "new_key": 1}, "r/config.json").output == "o"
