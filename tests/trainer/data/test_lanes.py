"""The order of rows: a function of data set, seed, batch and step alone."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.datasets import make_dataset
from trainer.data import peek
from trainer.data.dataset import Dataset
from trainer.data.feed import lanes_of, super_batches
from trainer.data.lanes import plan
from trainer.errors import UsageError


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return make_dataset(tmp_path_factory.mktemp("data"), rows=2500, shards=8)


def rows(dataset: Dataset, **changes: Any) -> list[list[int]]:
    given_flags = {
        "data": dataset.path, "split": "train", "global_batch": 64, "replicas": 1, "step": 0,
        "steps": 1, "seed": 0, "lanes": None, "window_rows": 100, "json": True,
    }  # fmt: skip
    steps = peek.peek(argparse.Namespace(**{**given_flags, **changes}))
    return [[row for lane in lanes for row in lane] for _, lanes in steps]


@pytest.mark.parametrize("replicas", [2, 4, 8])
def test_a_step_sees_the_same_rows_on_any_number_of_replicas(
    dataset: Dataset, replicas: int
) -> None:
    assert rows(dataset, steps=80, replicas=replicas) == rows(dataset, steps=80)


def test_a_resumed_run_sees_the_rows_of_an_undisturbed_one(dataset: Dataset) -> None:
    whole = rows(dataset, steps=80)
    assert rows(dataset, step=37, steps=43, replicas=2) == whole[37:]


def test_super_batches_of_any_length_cut_the_same_stream(dataset: Dataset) -> None:
    lanes = plan([s.rows for s in dataset.split("train").shards], global_batch=64, replicas=2)
    which = lanes_of(1, 2, lanes)
    one = super_batches(dataset, "train", lanes, which, step=0, steps=1)
    ten = super_batches(dataset, "train", lanes, which, step=0, steps=10)
    singles = np.concatenate([next(one).row_id for _ in range(40)])
    tens = np.concatenate([next(ten).row_id for _ in range(4)])
    assert singles.tolist() == tens.tolist()


def test_an_epoch_sees_every_row_once_but_for_the_remainder(dataset: Dataset) -> None:
    train = dataset.split("train").rows
    steps = train // 64
    seen = Counter(row for step in rows(dataset, steps=steps) for row in step)
    assert set(seen.values()) == {1}
    assert len(seen) == steps * 64


def test_epochs_differ_and_so_do_seeds(dataset: Dataset) -> None:
    steps = dataset.split("train").rows // 64
    assert rows(dataset)[0] != rows(dataset, step=steps + 1)[0]
    assert rows(dataset)[0] != rows(dataset, seed=1)[0]


@settings(max_examples=60, deadline=None)
@given(
    shard_rows=st.lists(st.integers(1, 50), min_size=1, max_size=12),
    per_lane=st.integers(1, 5),
    seed=st.integers(0, 99),
    window=st.integers(1, 40),
    data=st.data(),
)
def test_lanes_cut_an_epoch_into_equal_disjoint_parts(
    shard_rows: list[int], per_lane: int, seed: int, window: int, data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, min(len(shard_rows), sum(shard_rows))))
    lanes = plan(
        shard_rows, global_batch=count * per_lane, replicas=1, seed=seed,
        window_rows=window, lanes=count,
    )  # fmt: skip
    seen: Counter[tuple[int, int]] = Counter()
    for lane in range(count):
        taken = 0
        for one, skip in lanes.windows(lane, 0):
            assert skip == 0
            if one.epoch == 1:
                break
            taken += one.rows
            assert sorted(lanes.permutation(one)) == list(range(one.rows))
            for piece in one.pieces:
                seen.update((piece.shard, row) for row in range(piece.start, piece.end))
        assert taken == lanes.rows_per_epoch == sum(shard_rows) // count
    assert set(seen.values()) == {1}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"replicas": 16}, "shards (8) < replicas (16): re-shard with --shards >= 16"),
        ({"replicas": 3, "global_batch": 96}, "do not divide lanes (8): pass --lanes 6"),
        ({"replicas": 3}, "global_batch (64) is not a multiple of replicas (3): take 66"),
        ({"lanes": 3}, "lanes (3) do not divide global_batch (64)"),
        ({"lanes": 16}, "shards (8) < lanes (16): re-shard with --shards >= 16"),
        ({"split": "valid"}, "split 'valid' is not in"),
        ({"global_batch": 0}, "--global-batch (0): must be at least 1"),
        ({"data": "nowhere"}, "nowhere is not a dataset directory"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    dataset: Dataset, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError) as error:
        rows(dataset, **changes)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_peek_prints_one_json_object_a_step(
    dataset: Dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser()
    peek.add_arguments(parser)
    flags = ["--data", dataset.path, "--global-batch", "8", "--step", "3", "--steps", "2", "--json"]
    assert peek.run(parser.parse_args(flags)) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["step"], second["step"], len(first["rows"])) == (3, 4, 8)


def test_a_damaged_shard_is_named(tmp_path: Path) -> None:
    dataset = make_dataset(tmp_path, rows=500, shards=2)
    path = tmp_path / dataset.split("train").shards[1].path
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(UsageError, match=r"00001-of-00002\.tfrecord has \d+ bytes, the manifest"):
        rows(dataset)
    path.write_bytes(whole[:300] + bytes([whole[300] ^ 1]) + whole[301:])
    with pytest.raises(UsageError, match=r"00001-of-00002\.tfrecord is damaged: record 0"):
        rows(dataset, steps=20)
