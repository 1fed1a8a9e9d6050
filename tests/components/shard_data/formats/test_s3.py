"""Sources in an S3 store: found by globs and folders, read, and watched."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
import s3fs

from components.shard_data import inputs
from tests.components.shard_data.formats import reads
from tests.s3 import BUCKET, KEYS, SETTINGS, client, s3_server
from trainer.errors import UsageError

TEXT = b"x,y\n1,0\n2,1\n"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[s3fs.S3FileSystem]:
    """A store that `s3://` means."""
    with s3_server() as url:
        for name, value in {**KEYS, **SETTINGS, "AWS_ENDPOINT_URL": url}.items():
            monkeypatch.setenv(name, value)
        fsspec.filesystem("s3").clear_instance_cache()
        yield client(url)
        fsspec.filesystem("s3").clear_instance_cache()


def test_tables_and_images_of_a_store_are_read(store: s3fs.S3FileSystem, tmp_path: Path) -> None:
    store.pipe(f"{BUCKET}/in/a b.csv.gz", gzip.compress(TEXT))
    store.pipe(f"{BUCKET}/in/c=7/é.csv", TEXT)
    store.pipe(f"{BUCKET}/photos/cats/1 é.png", reads.picture())
    assert reads.read(f"s3://{BUCKET}/in/*.gz", tmp_path).columns["x"] == ["1", "2"]
    found = reads.read(f"s3://{BUCKET}/in", tmp_path)
    assert found.columns["c"] == [None, None, "7", "7"]
    photos = reads.read(f"s3://{BUCKET}/photos", tmp_path)
    assert photos.columns["path"] == ["cats/1 é.png"]
    assert photos.columns["image"] == [reads.picture()]


def test_a_change_in_a_store_is_seen(store: s3fs.S3FileSystem) -> None:
    store.pipe(f"{BUCKET}/in/a.csv", TEXT)
    found = inputs.find([f"s3://{BUCKET}/in"])
    inputs.check_unchanged(found)
    store.pipe(f"{BUCKET}/in/a.csv", TEXT.replace(b"2", b"3"))
    with pytest.raises(UsageError, match=r"in/a\.csv changed while it was read"):
        inputs.check_unchanged(found)


def test_what_a_store_has_not_is_named(store: s3fs.S3FileSystem) -> None:
    with pytest.raises(UsageError, match="no such source: s3://"):
        inputs.find([f"s3://{BUCKET}/gone.csv"])
