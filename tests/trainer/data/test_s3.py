"""Shards in s3://: the real client against a server on loopback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import s3fs

from tests.datasets import make_dataset
from tests.s3 import BUCKET, KEYS, SETTINGS, client, s3_server
from trainer.data.blocks import concat
from trainer.data.dataset import Dataset
from trainer.data.rows import read_rows
from trainer.data.staging import Cache
from trainer.errors import UsageError


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def bucket(keys: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[s3fs.S3FileSystem]:
    with s3_server() as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        yield client(url)


@pytest.mark.parametrize("cached", [False, True])
def test_shards_of_a_bucket_are_read_as_local_ones(
    bucket: s3fs.S3FileSystem, tmp_path: Path, cached: bool
) -> None:
    local = make_dataset(tmp_path / "dataset", rows=600, shards=2)
    bucket.put(f"{tmp_path}/dataset/", f"{BUCKET}/dataset/", recursive=True)
    remote = Dataset.open(f"s3://{BUCKET}/dataset")
    remote.check_sizes("train")
    if cached:
        remote = replace(remote, cache=Cache(str(tmp_path / "cache"), 10**8))
    theirs, ours = (concat(list(read_rows(dataset, "train"))) for dataset in (remote, local))
    assert theirs.row_id.tolist() == ours.row_id.tolist()
    assert len(list(tmp_path.glob("cache/*.shard"))) == (2 if cached else 0)


@pytest.mark.usefixtures("bucket")
def test_a_bucket_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match="s3://nobody-has-this/dataset"):
        Dataset.open("s3://nobody-has-this/dataset")


@pytest.mark.usefixtures("keys")
def test_a_store_that_does_not_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(UsageError, match=r"s3://.*: Could not connect"):
        Dataset.open(f"s3://{BUCKET}/dataset")


def test_missing_credentials_are_one_line() -> None:
    with pytest.raises(UsageError, match=r"s3://.*: Unable to locate credentials"):
        Dataset.open(f"s3://{BUCKET}/dataset")
