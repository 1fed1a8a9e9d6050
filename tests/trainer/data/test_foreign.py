"""TFRecords that castell did not make: described in one pass, trained on like any other data."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.runs import run_main
from tests.workers import Worker
from trainer.config import TrainConfig
from trainer.data import source
from trainer.data.blocks import concat
from trainer.data.example import Example
from trainer.data.records import frame
from trainer.data.rows import label_values, raw_features, read_rows
from trainer.errors import UsageError

SCHEMA = """
feature { name: "x" type: FLOAT presence { min_fraction: 1.0 min_count: 1 } shape { dim { size: 1 } } }
feature { name: "n" type: INT value_count { min: 1 max: 1 } int_domain { min: 0 max: 9 } }
feature { name: "word" type: BYTES presence { min_count: 1 } shape {} }
feature { name: "pair" type: FLOAT shape { dim { size: 2 } } lifecycle_stage: BETA }
feature { name: "grid" type: INT shape { dim { size: 2 } dim { size: 3 } } }
feature { name: "many" type: INT value_count { min: 0 } }
feature { name: "answer" type: BYTES presence { min_fraction: 1.0 } shape { dim { size: 1 } } }
string_domain { name: "d" value: "yes" }
"""  # noqa: E501
FILES, ROWS = 4, 150


def example(**values: Any) -> bytes:
    made = Example()
    for name, value in values.items():
        listed = value if isinstance(value, list) else [value]
        kind = {float: "float_list", int: "int64_list", bytes: "bytes_list"}[type(listed[0])]
        getattr(made.features.feature[name], kind).value.extend(listed)
    return frame(bytes(made.SerializeToString()))


def row(i: int) -> dict[str, Any]:
    values: dict[str, Any] = {"x": i / 10, "pair": [float(i), -1.0], "answer": b"yes"}
    values["grid"] = [i, 1, 2, 3, 4, 5]
    if (i % 7) < 3:
        values["answer"] = b"no"
    if i % 5:
        values["n"] = i % 7
        values["word"] = b"w%d" % (i % 3)
    if i % 2:
        values["many"] = [i, i + 1]
    return values


def write(folder: Path, files: int = FILES, rows: int = ROWS, **more: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        numbers = range(number * rows, (number + 1) * rows)
        data = b"".join(example(**row(i), **more) for i in numbers)
        (folder / f"part-{number}.tfrecord").write_bytes(data)


@pytest.fixture
def records(tmp_path: Path) -> Path:
    write(tmp_path / "records")
    (tmp_path / "schema.pbtxt").write_text(SCHEMA)
    return tmp_path / "records"


def config(records: Path, **changes: Any) -> TrainConfig:
    given = {
        "data": f"{records}/*.tfrecord", "schema_file": str(records.parent / "schema.pbtxt"),
        "label": "answer", "output": str(records.parent / "run"), **changes,
    }  # fmt: skip
    return TrainConfig.model_validate(given)


def test_columns_label_and_figures_come_from_schema_and_records(records: Path) -> None:
    dataset = source.open_data(config(records))
    manifest, figures = dataset.manifest, dataset.split_statistics("train").features
    assert [(f.name, f.shape, f.nullable) for f in manifest.features] == [
        ("x", (), False), ("n", (), True), ("word", (), True), ("pair", (2,), True),
        ("grid", (2, 3), True),
        ("many", (None,), True), ("answer", (), False),
    ]  # fmt: skip
    assert (manifest.label.kind, manifest.label.classes) == ("binary", ("no", "yes"))
    total = FILES * ROWS
    x = np.arange(total) / 10
    assert dataset.split("train").rows == figures["x"].count == total
    assert figures["x"].mean == pytest.approx(x.mean())
    assert figures["x"].std == pytest.approx(x.std())
    assert figures["x"].min == 0
    assert figures["x"].max == pytest.approx(x.max())
    assert (figures["n"].missing, figures["n"].distinct) == (total // 5, 7)
    counted = dict(figures["word"].vocabulary or ())
    assert counted == {
        f"w{k}": sum(i % 5 > 0 and i % 3 == k for i in range(total)) for k in (0, 1, 2)
    }
    assert (figures["many"].count, figures["many"].missing) == (total // 2, total // 2)
    dataset.check_sizes("train")
    block = concat(list(read_rows(dataset, "train")))
    columns = raw_features(dataset, block, ["x", "word", "pair"])
    np.testing.assert_allclose(columns["x"], x.astype(np.float32))
    assert columns["word"][:3].tolist() == [b"", b"w1", b"w2"]
    assert label_values(dataset, block)[:7].tolist() == [0, 0, 0, 1, 1, 1, 1]


def test_folders_are_splits_and_what_the_schema_lacks_is_said(
    records: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(records / "train", extra=1)
    write(records / "eval", files=1)
    dataset = source.open_data(config(records, data=str(records)))
    assert {n: len(s.shards) for n, s in dataset.manifest.splits.items()} == {
        "train": FILES, "eval": 1,
    }  # fmt: skip
    assert capsys.readouterr().err.count("left out, since the schema does not have it: extra") == 1


def _first(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    def spoil(records: Path) -> None:
        file = records / "part-0.tfrecord"
        file.write_bytes(change(file.read_bytes()))

    return spoil


def _schema(text: str) -> Callable[[Path], object]:
    return lambda records: (records.parent / "schema.pbtxt").write_text(text)


@pytest.mark.parametrize(
    ("spoil", "changes", "words"),
    [
        (None, {"data": "/nowhere/*.tfrecord"}, "no file matches /nowhere/"),
        (None, {"label": None}, "label is required"),
        (None, {"label": "anser"}, r"label \(anser\): the schema has no such feature"),
        (None, {"label": "n"}, r"label 'n' is missing in 120 of 600 rows of split 'train'"),
        (None, {"label": "pair"}, "the schema says it is a list"),
        (None, {"schema_file": "/nowhere"}, "schema_file /nowhere: no such file"),
        (None, {"schema_file": "foo://s"}, "schema_file foo://s cannot be read: .*'?foo"),
        (None, {"data": "foo://s/part-0.tfrecord"}, "foo://s/part-0.tfrecord cannot be read"),
        (_schema("feature {"), {}, "is no tensorflow_metadata Schema"),
        (
            _schema(SCHEMA.replace('"x" type: FLOAT', '"x" type: INT')), {},
            "part-0.tfrecord is damaged or does not fit .* 'x' is a float_list, not a int64_list",
        ),
        (
            _schema(SCHEMA + 'feature { name: "z" type: INT }'), {},
            "feature 'z' of the schema is in no record",
        ),
        (_schema('feature { name: "z" type: STRUCT }'), {}, "feature 'z' is STRUCT"),
        (_schema(SCHEMA * 2), {}, "feature 'x' is described twice"),
        *[
            (
                _schema(SCHEMA.replace("dim { size: 2 }", f"dim {{ size: {size} }}")), {},
                "feature 'pair' has lists of .* values: a row has 1 to 1,048,576",
            )
            for size in ("-2", "0", "9000000000000000000", "4000000000 } dim { size: 4000000000")
        ],
        (
            _schema(
                SCHEMA.replace(
                    "value_count { min: 0 }", f"value_count {{ min: {10**15} max: {10**15} }}"
                )
            ),
            {}, "feature 'many' has lists of",
        ),
        (_first(gzip.compress), {}, "compressed by gzip"),
        (_first(lambda data: data[:-3]), {}, "record 149 is cut off"),
        (
            _first(lambda data: data + example(x=1)), {},
            "record 150: 'x' is a int64_list, not a float_list",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_line(
    records: Path, spoil: Any, changes: dict[str, Any], words: str
) -> None:
    if spoil is not None:
        spoil(records)
    with pytest.raises(UsageError, match=words):
        source.open_data(config(records, **changes))


@pytest.mark.parametrize(
    "where", ["{}/part-1.tfrecord", "./records/part-1.tfrecord", "file://{}/part-1.tfrecord"]
)
def test_one_file_is_a_glob_of_one(
    records: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.chdir(records.parent)
    made = config(records, data=where.format(records))
    dataset = source.open_data(made)
    assert [shard.path for shard in dataset.split("train").shards] == ["part-1.tfrecord"]
    dataset.check_sizes("train")
    assert source.place_of(made) == dataset.path
    monkeypatch.chdir(records)
    assert source.open_data(config(records, data="part-1.tfrecord")).split("train").rows == ROWS


def test_a_label_for_data_that_has_one(dataset: Any) -> None:
    given = {"data": dataset.path, "output": "run", "label": "y"}
    with pytest.raises(UsageError, match="need schema_file too"):
        source.open_data(TrainConfig.model_validate(given))


def evaluate(argv: list[str]) -> int:
    from pipelines.cli import main

    return main(argv)


@pytest.fixture
def trained(records: Path, tmp_path: Path, start: Callable[..., Worker]) -> TrainConfig:
    made = config(records)
    options = {
        "data": made.data, "schema-file": made.schema_file, "label": "answer", "steps": 30,
        "output": made.output, "global-batch": 32, "steps-per-call": 10, "hidden": 8,
        "weight-column": "x", "class-weights": "balanced",
    }  # fmt: skip
    argv = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    start(run_main, argv, log=tmp_path / "train.log").expect(0)
    return made


def test_records_train_and_evaluate_and_are_looked_through_once(
    records: Path,
    trained: TrainConfig,
    tmp_path: Path,
    start: Callable[..., Worker],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = tmp_path / "evaluation"
    start(
        evaluate,
        ["evaluate", "--run", trained.output, "--data", trained.data, "--split", "train",
         "--output", str(output)],
        log=tmp_path / "evaluate.log",
    ).expect(0)  # fmt: skip
    predictions = pq.read_table(output / "predictions.parquet").to_pydict()
    np.testing.assert_allclose(predictions["weight"], np.arange(FILES * ROWS) / 10, rtol=1e-6)
    write(tmp_path / "later", files=1)
    later = source.open_for_run(trained.output, f"{tmp_path}/later/*")
    assert later.split("train").rows == ROWS
    (tmp_path / "later" / "part-1.tfrecord").write_bytes(example(**{**row(0), "answer": b"maybe"}))
    with pytest.raises(UsageError, match="classes that the run was not trained on: maybe"):
        source.open_for_run(trained.output, f"{tmp_path}/later/*")
    monkeypatch.setattr("trainer.data.foreign._Scan", None)  # whoever looks again, fails
    again = source.open_data(trained)
    assert again.split("train").rows == FILES * ROWS
    assert again.manifest.weight_column is None
