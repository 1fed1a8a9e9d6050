"""The dataset directory as a whole: same bytes, right splits, right figures, all or nothing."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from components.shard_data import verify
from components.shard_data.encoding import records
from components.shard_data.shard import shard
from tests.components.shard_data.made import examples, make, make_text, refused_text, rows, write
from trainer.data.dataset import Dataset
from trainer.data.manifest import Manifest
from trainer.errors import CastellError, UsageError

SPLIT = "train=0.7,eval=0.2,test=0.1"


def _table(count: int) -> str:
    lines = [
        f"{i},{i / 7:.3f},{'' if i % 5 == 0 else f'w{i % 3}'},{'' if i % 4 == 0 else i},u{i},"
        f"{(i // 10)},{i % 2}"
        for i in range(count)
    ]
    return "id,real,word,some,unique,person,y\n" + "\n".join(lines) + "\n"


def _files(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("layout", ["blocks", "rows"])
def test_the_same_input_and_seed_make_the_same_bytes(tmp_path: Path, layout: str) -> None:
    made = []
    for name, processes in (("out1", 1), ("out2", 3)):
        make_text(tmp_path, _table(5000), output=str(tmp_path / name), layout=layout,
                  processes=processes)  # fmt: skip
        made.append(_files(tmp_path / name))
    assert made[0] == made[1]
    other = make_text(tmp_path, _table(5000), output=str(tmp_path / "out3"), layout=layout, seed=1)
    shards = [shard.sha256 for shard in other.splits["train"].shards]
    assert not set(shards) & set(made[0].values())


def test_splits_are_disjoint_and_complete_and_shuffled_globally(tmp_path: Path) -> None:
    manifest = make_text(tmp_path, _table(5000), split=SPLIT, verify=True)
    found = {name: rows(tmp_path / "out", name) for name in manifest.splits}
    assert {name: len(part["row_id"]) for name, part in found.items()} == {
        "train": 3500, "eval": 1000, "test": 500,
    }  # fmt: skip
    assert sorted(i for part in found.values() for i in part["row_id"]) == list(range(5000))
    for part in found.values():
        assert part["id"] == part["row_id"]
        stored = np.array(part["stored"])
        # Any tenth of the stored order holds rows from all over the source.
        for chunk in np.array_split(stored, 10):
            assert abs(chunk.mean() - 2500) < 6 * 1443 / np.sqrt(len(chunk))
        assert abs(np.corrcoef(stored[:-1], stored[1:])[0, 1]) < 0.15


def test_shards_are_equal_to_within_a_row(tmp_path: Path) -> None:
    manifest = make_text(tmp_path, _table(1003), split=SPLIT, shards=5, block_rows=64)
    for split in manifest.splits.values():
        sizes = [part.rows for part in split.shards]
        assert len(sizes) == 5
        assert max(sizes) - min(sizes) <= 1
        assert all(part.records == -(-part.rows // 64) for part in split.shards)
    default = make_text(tmp_path, _table(1003), output=str(tmp_path / "out2"))
    assert len(default.splits["train"].shards) == 16


def test_equal_values_share_a_split(tmp_path: Path) -> None:
    manifest = make_text(tmp_path, _table(5000), split=SPLIT, split_by="person", drop=["person"])
    assert "person" not in [f.name for f in manifest.features]
    owner: dict[int, str] = {}
    for name in manifest.splits:
        for row in rows(tmp_path / "out", name)["row_id"]:
            assert owner.setdefault(row // 10, name) == name
    shares = {name: split.rows / 5000 for name, split in manifest.splits.items()}
    assert shares["train"] == pytest.approx(0.7, abs=0.08)
    assert manifest.split_rule["column"] == "person"


def test_a_small_table_does_without_default_splits(tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", _table(3))
    from components.shard_data.options import ShardOptions

    manifest = shard(
        ShardOptions.parse({"sources": [str(source)], "output": str(tmp_path / "o"), "label": "y"})
    )
    assert set(manifest.splits) == {"train", "eval"}
    assert any("no test split" in note for note in manifest.notes)


def test_statistics_are_those_of_numpy(tmp_path: Path) -> None:
    make_text(tmp_path, _table(2000), split=SPLIT)
    dataset = Dataset.open(str(tmp_path / "out"))
    for name in dataset.manifest.splits:
        found = rows(tmp_path / "out", name)
        figures = dataset.split_statistics(name).features
        for column in ("real", "some", "y"):
            values = np.array([v for v in found[column] if v is not None], np.float64)
            figure = figures[column]
            assert (figure.count, figure.missing) == (
                len(values), len(found[column]) - len(values),
            )  # fmt: skip
            assert figure.mean == pytest.approx(values.mean())
            assert figure.std == pytest.approx(values.std())
            assert (figure.min, figure.max) == (values.min(), values.max())
            assert figure.quantiles == pytest.approx(np.quantile(values, np.linspace(0, 1, 11)))
            assert sum(figure.histogram_counts or ()) == len(values)
            assert figure.distinct == len(set(values))
        words = [w for w in found["word"] if w is not None]
        expected = sorted(((w, words.count(w)) for w in set(words)), key=lambda p: (-p[1], p[0]))
        assert figures["word"].vocabulary == tuple(expected)


def test_text_of_few_values_is_coded_and_of_many_is_not(tmp_path: Path) -> None:
    manifest = make_text(tmp_path, _table(5000), split=SPLIT)
    assert manifest.feature("word").dictionary == ("w0", "w1", "w2")
    assert manifest.feature("unique").dictionary is None
    found = rows(tmp_path / "out")
    assert found["unique"] == [f"u{i}" for i in found["row_id"]]
    assert found["some"] == [None if i % 4 == 0 else i for i in found["row_id"]]
    assert found["word"] == [None if i % 5 == 0 else f"w{i % 3}" for i in found["row_id"]]


def test_row_records_leave_nulls_out_and_sort_their_keys(tmp_path: Path) -> None:
    make_text(tmp_path, "b,a,y\n1,,0\n,u,1\n", layout="rows")
    found = sorted(
        (sorted(e.features.feature), e.features.feature["y"].int64_list.value[0])
        for e in examples(tmp_path / "out")
    )
    assert found == [(["a", "y"], 1), (["b", "y"], 0)]


def test_the_schema_describes_the_columns(tmp_path: Path) -> None:
    make_text(tmp_path, "d,f,w,y\n2020-01-01,true,a,3\n2020-01-02,,b,1\n", label_kind="binary")
    text = (tmp_path / "out/schema.pbtxt").read_text()
    schema = {f.name: f for f in text_format.Parse(text, schema_pb2.Schema()).feature}
    assert schema["d"].time_domain.integer_format == schema_pb2.TimeDomain.UNIX_DAYS
    assert schema["f"].HasField("bool_domain")
    assert schema["f"].presence.min_fraction == 0
    assert list(schema["w"].string_domain.value) == ["a", "b"]
    assert schema["y"].int_domain.is_categorical


def test_the_same_call_again_does_nothing(tmp_path: Path) -> None:
    first = make_text(tmp_path, _table(100))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    assert make_text(tmp_path, _table(100)).fingerprint == first.fingerprint
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")} == before


def test_an_output_that_holds_something_else_is_kept(tmp_path: Path) -> None:
    make_text(tmp_path, _table(100))
    before = _files(tmp_path / "out")
    for change in ({"seed": 1}, {"drop": ["word"]}):
        with pytest.raises(UsageError, match="choose another directory, or delete it"):
            make(tmp_path, tmp_path / "a.csv", **change)
    assert _files(tmp_path / "out") == before
    write(tmp_path / "mine/notes.txt", "keep me")
    with pytest.raises(UsageError, match="choose another directory, or delete it"):
        make(tmp_path, tmp_path / "a.csv", output=str(tmp_path / "mine"))
    with pytest.raises(UsageError, match="is a file"):
        make(tmp_path, tmp_path / "a.csv", output=str(tmp_path / "a.csv"))


def test_an_empty_output_directory_is_taken(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    make_text(tmp_path, _table(100))
    assert (tmp_path / "out/manifest.json").exists()


def test_a_failure_while_writing_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(records, "frame", full)
    with pytest.raises(UsageError, match=r"--output .*: No space left on device"):
        make_text(tmp_path, _table(100))
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_an_output_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    write(tmp_path / "file", "x")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    for output in ("file/below", "link", "n" * 300):
        with pytest.raises(UsageError, match=f"--output {tmp_path / output}"):
            make_text(tmp_path, _table(100), output=str(tmp_path / output))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "file", "link"]


def test_a_cut_or_altered_shard_is_found_by_verify(tmp_path: Path) -> None:
    manifest = make_text(tmp_path, _table(100))
    verify.verify(tmp_path / "out", manifest)
    path = tmp_path / "out" / manifest.splits["train"].shards[3].path
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    with pytest.raises(CastellError, match="00003-of-00016"):
        verify.verify(tmp_path / "out", manifest)


def test_the_manifest_is_plain_json_with_the_source(tmp_path: Path) -> None:
    make_text(tmp_path, _table(100))
    read = json.loads((tmp_path / "out/manifest.json").read_text())
    (file,) = read["source"]["files"]
    assert file["sha256"] == hashlib.sha256((tmp_path / "a.csv").read_bytes()).hexdigest()
    assert Manifest.model_validate(read).rows == 100


def test_a_bad_column_can_be_dropped(tmp_path: Path) -> None:
    text = "bad,x,y\n1,1,0\nNA,2,1\n"
    assert "column bad" in refused_text(tmp_path, text)
    make_text(tmp_path, text, drop=["bad"])
    assert rows(tmp_path / "out")["x"] == [1, 2]


def test_a_column_that_only_names_rows_is_said(tmp_path: Path) -> None:
    manifest = make_text(tmp_path, _table(2000), drop=["unique"])
    (said,) = (note for note in manifest.notes if "another value in every row" in note)
    assert said.startswith("column id has")
    assert said.endswith("--drop id")


def test_the_same_file_twice_is_said(tmp_path: Path) -> None:
    files = [write(tmp_path / name, _table(50)) for name in ("a.csv", "b.csv")]
    told: list[str] = []
    options = {"sources": [str(f) for f in files], "output": str(tmp_path / "o"), "label": "y"}
    from components.shard_data.options import ShardOptions

    shard(ShardOptions.parse(options), told.append)
    assert any("a.csv and" in line and "byte for byte" in line for line in told)


def test_a_link_to_a_directory_means_that_directory(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    make_text(tmp_path, _table(100), output=str(tmp_path / "link"))
    assert (tmp_path / "real/manifest.json").exists()
    assert (tmp_path / "link").is_symlink()


def test_a_file_of_two_spellings_is_one(tmp_path: Path) -> None:
    source = write(tmp_path / "in/a.csv", _table(20))
    with pytest.raises(UsageError, match="given twice"):
        make(tmp_path, source, tmp_path / "in/../in/a.csv")
