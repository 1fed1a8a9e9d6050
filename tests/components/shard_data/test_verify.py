"""`castell shard --verify DATASET`, and Apache Beam as the engine."""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import pytest

from components.shard_data import command
from tests.components.shard_data.made import make, make_text, write
from trainer.errors import UsageError

TABLE = "x,w,y\n" + "".join(f"{i},w{i % 5},{i % 2}\n" for i in range(300))


def _run(*flags: str) -> int:
    parser = argparse.ArgumentParser("castell shard")
    command.add_arguments(parser)
    return command.run(parser.parse_args(list(flags)))


def test_a_whole_dataset_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_text(tmp_path, TABLE)
    assert _run("--verify", str(tmp_path / "out")) == 0
    assert "is whole: 300 rows" in capsys.readouterr().err
    assert _run("--verify", str(tmp_path / "out"), "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == {"train": 300}


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda out, shard: _flip(out / shard), "another checksum"),
        (lambda out, shard: (out / shard).unlink(), "No such file"),
        (lambda out, shard: (out / "schema.pbtxt").write_text(""), "schema.pbtxt"),
        (lambda out, shard: _swap(out), "another checksum"),
    ],
)
def test_what_is_damaged_is_named(tmp_path: Path, damage: object, said: str) -> None:
    manifest = make_text(tmp_path, TABLE)
    assert callable(damage)
    damage(tmp_path / "out", manifest.splits["train"].shards[2].path)
    with pytest.raises(UsageError, match=said) as caught:
        _run("--verify", str(tmp_path / "out"))
    assert "shard the data again" in str(caught.value)


def _swap(out: Path) -> None:
    one, other = sorted((out / "train").iterdir())[:2]
    (out / "train/held").write_bytes(one.read_bytes())
    other.rename(one)
    (out / "train/held").rename(other)


def test_the_flag_may_stand_before_a_source(tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", TABLE)
    assert _run("--label", "y", "--output", str(tmp_path / "out"), "--verify", str(source)) == 0
    with pytest.raises(UsageError, match="SOURCE is required"):
        _run("--label", "y", "--output", str(tmp_path / "o"))
    with pytest.raises(UsageError, match="--output DIR is required"):
        _run(str(source), "--label", "y")
    with pytest.raises(UsageError, match="--label COL is required"):
        _run(str(source), "--output", str(tmp_path / "o"))


def _files(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_beam_makes_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from components.shard_data import produce

    monkeypatch.setattr(produce, "_LARGEST_PIECE", 500)
    write(tmp_path / "in/a.csv", TABLE)
    write(tmp_path / "in/b.csv", TABLE.replace("w1", "v1"))
    make(tmp_path, tmp_path / "in", output=str(tmp_path / "here"), split_by="w")
    make(tmp_path, tmp_path / "in", split_by="w", engine="beam",
         beam_options=["runner=DirectRunner", "direct_num_workers=1"])  # fmt: skip
    assert _files(tmp_path / "out") == _files(tmp_path / "here")


def test_a_mistake_is_the_same_on_beam(tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", TABLE + "1,2\n")
    with pytest.raises(UsageError, match=r"line 302: 2 fields, the header has 3"):
        make(tmp_path, source, engine="beam")
    for option, said in (("runner=Nope", "Nope"), ("runer=Nope", "did you mean 'runner'")):
        with pytest.raises(UsageError, match=f"--beam-option.*{said}"):
            make(tmp_path, source, engine="beam", beam_options=[option])
    with pytest.raises(UsageError, match="--beam-option is for --engine beam"):
        make(tmp_path, source, beam_options=["runner=DirectRunner"])
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
