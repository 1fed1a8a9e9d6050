"""Copies of remote shards: fetched once, checked, bounded, shared, and never in the way."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.datasets import make_dataset
from tests.trainer.data.stores import Store, store
from tests.workers import processes
from trainer import again
from trainer.data import staging
from trainer.data.blocks import concat
from trainer.data.dataset import Dataset
from trainer.data.feed import lanes_of, super_batches
from trainer.data.lanes import plan
from trainer.data.rows import DamagedShard, read_rows
from trainer.data.staging import Cache
from trainer.errors import UsageError

SHARDS = 4


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return make_dataset(tmp_path_factory.mktemp("staging"), rows=2000, shards=SHARDS)


@pytest.fixture
def server(local: Dataset, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(again, "FIRST_PAUSE_SECONDS", 0.01)
    staging._said.clear()
    with store(Path(local.path)) as running:
        yield running


def remote(server: Store, cache: Path, shards: float = 10) -> Dataset:
    """The data set as the server has it, with a cache of so many shards."""
    dataset = Dataset.open(server.url)
    largest = max(shard.bytes for shard in dataset.split("train").shards)
    return replace(dataset, cache=Cache(str(cache), int(shards * largest)))


def row_ids(dataset: Dataset) -> list[int]:
    return [int(row) for row in concat(list(read_rows(dataset, "train"))).row_id]


def held(cache: Path) -> int:
    return sum(file.stat().st_size for file in cache.iterdir())


def test_a_shard_is_fetched_once_whatever_happens_on_the_way(
    local: Dataset, server: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.faults = ["error", "cut", "altered"]
    dataset = remote(server, tmp_path)
    assert row_ids(dataset) == row_ids(dataset) == row_ids(local)
    assert len(server.fetched) == len(server.faults) + 3 + SHARDS
    said = capsys.readouterr().err
    for words in ("503", "not completed", "sha256", "(3 of 5 tries)"):
        assert words in said


def test_a_shard_that_never_comes_whole_is_named_with_the_reason(
    server: Store, tmp_path: Path
) -> None:
    server.faults = ["altered"] * again.TRIES
    first = "/train/00000-of-00004.tfrecord"
    with pytest.raises(DamagedShard) as error:
        row_ids(remote(server, tmp_path))
    assert str(error.value) == (
        f"shard {server.url}{first} cannot be read: its sha256 is not the manifest's (5 tries)"
    )
    assert server.fetched == [first] * again.TRIES
    assert held(tmp_path) == 0


def test_a_shard_that_is_not_there_is_not_asked_for_again(server: Store, tmp_path: Path) -> None:
    dataset = remote(server, tmp_path)
    train = dataset.split("train")
    gone = train.shards[0].model_copy(update={"path": "train/gone.tfrecord", "sha256": "0"})
    splits = {"train": train.model_copy(update={"shards": (gone, *train.shards[1:])})}
    dataset = replace(dataset, manifest=dataset.manifest.model_copy(update={"splits": splits}))
    with pytest.raises(DamagedShard, match="missing"):
        row_ids(dataset)


def test_the_oldest_copies_make_room_and_open_ones_stay_readable(
    local: Dataset, server: Store, tmp_path: Path
) -> None:
    dataset = remote(server, tmp_path, shards=2.5)
    assert dataset.cache is not None
    shards = dataset.split("train").shards
    files = []
    for shard in shards:
        files.append(dataset.cache.open(f"{server.url}/{shard.path}", shard))
        assert held(tmp_path) <= dataset.cache.most_bytes
    for file, shard in zip(files, shards, strict=True):
        assert file.read() == (Path(local.path) / shard.path).read_bytes()
        file.close()
    dataset.cache.open(f"{server.url}/{shards[-1].path}", shards[-1]).close()
    assert len(server.fetched) == SHARDS
    dataset.cache.open(f"{server.url}/{shards[0].path}", shards[0]).close()
    assert len(server.fetched) == SHARDS + 1


def test_what_a_killed_worker_left_makes_room_first(server: Store, tmp_path: Path) -> None:
    dataset = remote(server, tmp_path, shards=SHARDS)
    row_ids(dataset)
    (tmp_path / "dead.part").write_bytes(b"half")
    shard = dataset.split("eval").shards[0]
    assert dataset.cache is not None
    dataset.cache.open(f"{server.url}/{shard.path}", shard).close()
    assert not list(tmp_path.glob("*.part"))
    assert len(list(tmp_path.glob("*.shard"))) == SHARDS


@pytest.mark.parametrize("trouble", ["small bound", "no directory", "full disk"])
def test_what_the_cache_cannot_take_is_read_in_place_and_that_is_said(
    local: Dataset, server: Store, tmp_path: Path, trouble: str, capsys: Any
) -> None:
    dataset = remote(server, tmp_path, shards=0.5 if trouble == "small bound" else 10)
    if trouble == "no directory":
        (tmp_path / "file").touch()
        dataset = replace(dataset, cache=Cache(str(tmp_path / "file"), 10**9))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    if trouble == "full disk":
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        found = row_ids(dataset)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert found == row_ids(local)
    assert capsys.readouterr().err.count("reading in place") == 1


def read(url: str, cache: str) -> None:
    dataset = replace(Dataset.open(url), cache=Cache(cache, 10**9))
    list(read_rows(dataset, "train"))


def test_workers_of_one_machine_fetch_each_shard_once(server: Store, tmp_path: Path) -> None:
    server.seconds = 0.5  # so that they meet
    with processes() as start:
        cache = str(tmp_path / "cache")
        workers = [start(read, server.url, cache, log=tmp_path / f"{n}.log") for n in range(3)]
        for worker in workers:
            worker.expect(0)
    assert len(server.fetched) == len(set(server.fetched)) == SHARDS


def test_the_next_shard_of_a_lane_comes_ahead(
    local: Dataset, server: Store, tmp_path: Path
) -> None:
    dataset = remote(server, tmp_path)
    lanes = plan(
        [s.rows for s in dataset.split("train").shards], global_batch=8, replicas=1, lanes=1,
        window_rows=50,
    )  # fmt: skip
    which = lanes_of(0, 1, lanes)
    feed = super_batches(dataset, "train", lanes, which, step=0, steps=1)
    plain = super_batches(local, "train", lanes, which, step=0, steps=1)
    assert next(feed).row_id.tolist() == next(plain).row_id.tolist()
    deadline = time.monotonic() + 10
    while len(list(tmp_path.glob("*.shard"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    first = int(lanes._shard_order(0)[0]), int(lanes._shard_order(0)[1])
    assert server.fetched == [f"/{dataset.split('train').shards[n].path}" for n in first]
    for _ in range(500):  # more than two epochs: every shard again and again, each fetched once
        assert next(feed).row_id.tolist() == next(plain).row_id.tolist()
    assert len(server.fetched) == SHARDS


def test_without_a_cache_an_http_server_is_read_in_place(local: Dataset, server: Store) -> None:
    dataset = Dataset.open(server.url)
    dataset.check_sizes("train")
    part = concat(list(read_rows(dataset, "train", 700, 1500)))  # begins inside a shard
    assert part.row_id.tolist() == row_ids(local)[700:1500]


@pytest.mark.parametrize("cached", [False, True])
def test_a_store_that_is_away_for_a_moment_is_waited_for(
    local: Dataset, server: Store, tmp_path: Path, cached: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = remote(server, tmp_path) if cached else Dataset.open(server.url)
    server.away = 6
    assert row_ids(dataset) == row_ids(local)
    assert "503" in capsys.readouterr().err


def test_a_file_read_in_place_goes_on_where_it_broke_off(
    local: Dataset, server: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    server.faults = ["cut", "cut"]
    assert row_ids(Dataset.open(server.url)) == row_ids(local)
    assert "(1 of 5 tries)" in capsys.readouterr().err


def test_a_server_that_is_away_is_not_taken_for_a_missing_data_set(server: Store) -> None:
    with pytest.raises(UsageError, match=r"manifest\.json cannot be read: Connect call failed"):
        Dataset.open("http://127.0.0.1:9/data")
    with pytest.raises(UsageError, match="is not a dataset directory"):
        Dataset.open(f"{server.url}/nothing")


def test_a_copy_that_is_damaged_where_it_lies_is_fetched_again(
    local: Dataset, server: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = remote(server, tmp_path)
    row_ids(dataset)
    copy = min(tmp_path.glob("*.shard"))
    content = bytearray(copy.read_bytes())
    content[len(content) // 2] ^= 1
    copy.write_bytes(content)
    assert row_ids(dataset) == row_ids(local)
    assert len(server.fetched) == SHARDS + 1
    assert "was damaged: it is fetched again" in capsys.readouterr().err
