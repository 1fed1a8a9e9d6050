"""Reported faults of input pipelines: what must hold."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.datasets import make_dataset
from tests.runs import cluster, flags
from tests.trainer.data.stores import store
from trainer.data.dataset import Dataset
from trainer.data.feed import lanes_of, super_batches
from trainer.data.input import training_batches
from trainer.data.lanes import plan
from trainer.data.records import frame, read_records
from trainer.errors import UsageError
from trainer.tasks.tabular.task import Tabular


def shards_of(dataset: Dataset) -> list[int]:
    return [shard.rows for shard in dataset.split("train").shards]


def test_fewer_shards_than_workers_are_refused_with_both_numbers(tmp_path: Path) -> None:
    """TF#36846: auto-sharding by file left workers without data."""
    dataset = make_dataset(tmp_path, rows=200, shards=3)
    with pytest.raises(UsageError) as error:
        plan(shards_of(dataset), global_batch=48, replicas=4)
    assert str(error.value) == "shards (3) < replicas (4): re-shard with --shards >= 4"


def test_replicas_read_disjoint_lanes_that_together_are_the_batch(dataset: Dataset) -> None:
    """TF#55474: a listing of files could not be sharded; lanes are explicit."""
    lanes = plan(shards_of(dataset), global_batch=64, replicas=4)
    seen: list[int] = []
    for replica in range(4):
        feed = super_batches(dataset, "train", lanes, lanes_of(replica, 4, lanes), step=0, steps=1)
        seen.extend(next(feed).row_id.tolist())
    assert len(seen) == len(set(seen)) == 64


def test_every_replica_has_a_full_batch_at_every_step_for_ever(tmp_path: Path) -> None:
    """TF#37112, TF#36153: replicas whose data ended earlier hung the others."""
    dataset = make_dataset(tmp_path, rows=203, shards=4)
    lanes = plan(shards_of(dataset), global_batch=16, replicas=2)
    for replica in range(2):
        feed = super_batches(dataset, "train", lanes, lanes_of(replica, 2, lanes), step=0, steps=3)
        assert {block.rows for block in itertools.islice(feed, 40)} == {3 * 8}


def test_training_batches_have_static_shapes(dataset: Dataset) -> None:
    """TF#61231: no replica ever sees an empty or a short batch."""
    task = Tabular()
    task.build(dataset)
    lanes = plan(shards_of(dataset), global_batch=64, replicas=2)
    feed = training_batches(
        task.columns(dataset),
        "train",
        task.preprocess,
        lanes,
        replica=1,
        replicas=2,
        step=0,
        last=15,
        steps=5,
    )
    for batch in itertools.islice(feed, 3):
        features, label, weight = batch
        assert label.shape == weight.shape == (5, 32)
        assert all(value.shape[:2] == (5, 32) for value in features.values())


def test_the_batch_after_a_restart_is_the_one_that_would_have_come(dataset: Dataset) -> None:
    """TF#56372, TF#24408: no iterator is saved, and none is needed."""
    task = Tabular()
    task.build(dataset)

    def batches(replicas: int, step: int) -> np.ndarray:
        lanes = plan(shards_of(dataset), global_batch=64, replicas=replicas)
        feeds = [
            training_batches(
                task.columns(dataset),
                "train",
                task.preprocess,
                lanes,
                replica=r,
                replicas=replicas,
                step=step,
                last=99,
                steps=1,
            )
            for r in range(replicas)
        ]
        rows = []
        for _ in range(2):
            parts = [next(feed) for feed in feeds]
            numbers = np.concatenate([features["numbers"][0].numpy() for features, _, _ in parts])
            rows.append(numbers[np.lexsort(numbers.T)])
        return np.stack(rows)

    undisturbed = batches(replicas=4, step=70)
    assert (batches(replicas=1, step=71)[0] == undisturbed[1]).all()


def _cut_last_record(shard: Path) -> int:
    """Leaves a file that ends like a whole one; returns its size."""
    with shard.open("rb") as file:
        *kept, _ = read_records(file)
    return shard.write_bytes(b"".join(map(frame, kept)))


def test_a_shard_of_another_size_ends_every_worker_with_2(tmp_path: Path, start: Any) -> None:
    made = make_dataset(tmp_path / "data", rows=400, shards=4)
    _cut_last_record(tmp_path / "data" / made.split("train").shards[2].path)
    for worker in cluster(start, flags(made, tmp_path / "run"), tmp_path / "logs"):
        log = worker.expect(2)
        assert "00002-of-00004.tfrecord has" in log
        assert "Traceback" not in log
    assert not (tmp_path / "run").exists()


def test_a_shard_of_fewer_rows_ends_every_worker_with_2(tmp_path: Path, start: Any) -> None:
    """TensorFlow reads a file that ends at a record's end as a whole one."""
    made = make_dataset(tmp_path / "data", rows=4000, shards=8)
    size = _cut_last_record(tmp_path / "data" / made.split("train").shards[2].path)
    file = tmp_path / "data" / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["splits"]["train"]["shards"][2]["bytes"] = size
    file.write_text(json.dumps(manifest))
    workers = cluster(start, flags(made, tmp_path / "run"), tmp_path / "logs")
    logs = "".join(worker.expect(2) for worker in workers)
    assert "00002-of-00008.tfrecord ends before its 400 rows" in logs
    assert "Traceback" not in logs


def test_a_remote_shard_that_comes_altered_ends_every_worker_with_2(
    tmp_path: Path, start: Any
) -> None:
    made = make_dataset(tmp_path / "data", rows=4000, shards=8)
    with store(tmp_path / "data") as server:
        server.spoilt.add(bad := f"/{made.split('train').shards[5].path}")
        remote = flags(made, tmp_path / "run", data=server.url, cache=tmp_path / "cache")
        workers = cluster(start, remote, tmp_path / "logs")
        logs = "".join(worker.expect(2) for worker in workers)
    assert f"shard {server.url}{bad} cannot be read: its sha256 is not the manifest's" in logs
    assert "Traceback" not in logs
