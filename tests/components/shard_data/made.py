"""Writes small sources, shards them, and reads the dataset back through the trainer's own code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.shard_data.options import ShardOptions
from components.shard_data.shard import shard
from trainer.data.blocks import NULL_CODE, NULL_INT, decode_block
from trainer.data.example import Example
from trainer.data.manifest import Manifest
from trainer.data.records import read_records
from trainer.errors import UsageError


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def make(tmp_path: Path, *sources: Path | str, label: str = "y", **options: Any) -> Manifest:
    """Shards into `tmp_path / "out"`, all of it into train unless told otherwise."""
    if "split_column" not in options:
        options.setdefault("split", "train=1")
    options.setdefault("output", str(tmp_path / "out"))
    given = {"sources": [str(s) for s in sources], "label": label, **options}
    return shard(ShardOptions.parse(given))


def make_text(tmp_path: Path, text: str | bytes, name: str = "a.csv", **options: Any) -> Manifest:
    return make(tmp_path, write(tmp_path / name, text), **options)


def refusal(tmp_path: Path, *sources: Path | str, **options: Any) -> str:
    """Returns the one line of a refused call, after checking that it left nothing behind."""
    with pytest.raises(UsageError) as caught:
        make(tmp_path, *sources, **options)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    assert not [path.name for path in tmp_path.iterdir() if "out" in path.name]
    return str(caught.value)


def refused_text(tmp_path: Path, text: str | bytes, name: str = "a.csv", **options: Any) -> str:
    return refusal(tmp_path, write(tmp_path / name, text), **options)


def rows(root: Path, split: str = "train") -> dict[str, list[Any]]:
    """Returns a split's columns as Python values (null: None), sorted by row id.

    `row_id` is a column; `stored` holds the row ids in stored order.
    """
    manifest = Manifest.model_validate_json((root / "manifest.json").read_text())
    columns: dict[str, list[Any]] = {f.name: [] for f in manifest.features}
    stored: list[int] = []
    for part in manifest.splits[split].shards:
        with (root / part.path).open("rb") as file:
            for payload in read_records(file):
                block = decode_block(manifest.features, payload)
                stored += block.row_id.tolist()
                for feature in manifest.features:
                    columns[feature.name] += _values(block.column(feature), feature)
    order = np.argsort(stored)
    result = {name: [values[i] for i in order] for name, values in columns.items()}
    return {**result, "row_id": sorted(stored), "stored": stored}


def _values(column: Any, feature: Any) -> list[Any]:
    values = column.values
    if column.splits is not None or feature.shape:
        cells = values if column.splits is None else np.split(values, column.splits[1:-1])
        valid = [True] * len(cells) if column.valid is None else column.valid
        return [
            _plain(cell.tolist()) if ok else None for cell, ok in zip(cells, valid, strict=True)
        ]
    if feature.dictionary is not None:
        return [None if code == NULL_CODE else feature.dictionary[code] for code in values]
    if feature.dtype == "string":
        return [value.decode() for value in values]
    if feature.dtype == "int64":
        return [None if value == NULL_INT else int(value) for value in values]
    return [None if np.isnan(value) else float(value) for value in values]


def _plain(cell: list[Any]) -> list[Any]:
    return [item.decode() if isinstance(item, bytes) else item for item in cell]


def examples(root: Path, split: str = "train") -> list[Any]:
    """Returns the records of layout `rows`, parsed."""
    manifest = Manifest.model_validate_json((root / "manifest.json").read_text())
    found = []
    for part in manifest.splits[split].shards:
        with (root / part.path).open("rb") as file:
            found += [Example.FromString(payload) for payload in read_records(file)]
    return found
