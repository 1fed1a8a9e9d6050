"""Data sets of any columns for tests of tasks: images as files or pixels, texts, scikit-learn's."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from trainer.data.blocks import Column, encode_block, pack, plan_storage
from trainer.data.dataset import Dataset
from trainer.data.manifest import Feature, Label, LabelKind, Manifest, Shard, Split
from trainer.data.records import frame
from trainer.data.statistics import FeatureStatistics, SplitStatistics, Statistics

SPLITS = {"train": 0.8, "test": 0.2}
BLOCK_ROWS = 64


def make(
    root: Path, columns: Mapping[str, Any], label: str = "y", shards: int = 4, kind: Any = None
) -> Dataset:
    """Writes columns [rows, …] (float32, int64, or objects of bytes or str) as a data set."""
    root.mkdir(parents=True, exist_ok=True)
    arrays = {name: _array(values) for name, values in columns.items()}
    features = plan_storage([_feature(name, values) for name, values in arrays.items()])
    rows = len(arrays[label])
    order = np.random.default_rng(0).permutation(rows)
    splits, statistics, start = {}, {}, 0
    for name, share in SPLITS.items():
        chosen = order[start : start + round(rows * share)]
        start += len(chosen)
        written = tuple(
            _write(root, f"{name}-{number}.tfrecord", features, arrays, part)
            for number, part in enumerate(np.array_split(chosen, shards))
        )
        splits[name] = Split(rows=len(chosen), shards=written)
        figures = {key: _figures(values[chosen]) for key, values in arrays.items()}
        statistics[name] = SplitStatistics(rows=len(chosen), features=figures)
    manifest = Manifest(
        layout="blocks", block_rows=BLOCK_ROWS, features=features, splits=splits, seed=0,
        label=_label(label, arrays[label], kind), split_rule={}, source={},
    )  # fmt: skip
    (root / "statistics.json").write_text(Statistics(splits=statistics).model_dump_json())
    (root / "manifest.json").write_text(json.dumps(manifest.model_dump(mode="json")))
    return Dataset.open(str(root))


def _array(values: Any) -> Any:
    values = np.asarray(values)
    if values.dtype.kind in "OSU":
        made = np.empty(values.shape, object)
        made[...] = [v.encode() if isinstance(v, str) else v for v in values.tolist()]
        return made
    return values.astype(np.float32 if values.dtype.kind == "f" else np.int64)


def _feature(name: str, values: Any) -> Feature:
    dtype: Any = "string" if values.dtype == object else values.dtype.name
    return Feature(name=name, dtype=dtype, shape=values.shape[1:])


def _label(name: str, values: Any, kind: LabelKind | None) -> Label:
    if kind == "regression" or values.dtype == np.float32:
        return Label(name=name, kind="regression")
    classes = tuple(int(v) for v in np.unique(values))
    return Label(name=name, kind="binary" if len(classes) == 2 else "multiclass", classes=classes)


def _figures(values: Any) -> FeatureStatistics:
    if values.dtype == object:
        return FeatureStatistics(count=len(values), missing=0, distinct=len(set(values.tolist())))
    wide = values.astype(np.float64)
    return FeatureStatistics(
        count=len(values), missing=0, distinct=len(np.unique(values)), mean=float(wide.mean()),
        std=float(wide.std()), min=float(wide.min()), max=float(wide.max()),
    )  # fmt: skip


def _write(
    root: Path, name: str, features: tuple[Feature, ...], arrays: Mapping[str, Any], ids: Any
) -> Shard:
    parts = [ids[i : i + BLOCK_ROWS] for i in range(0, len(ids), BLOCK_ROWS)]
    columns = {name: Column(values) for name, values in arrays.items()}
    block = pack(features, columns, np.arange(len(arrays[features[0].name])))
    data = b"".join(frame(encode_block(features, block.take(part))) for part in parts)
    (root / name).write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    return Shard(path=name, rows=len(ids), records=len(parts), bytes=len(data), sha256=digest)


def paragraphs() -> dict[str, Any]:
    """Returns paragraphs of the documentation of numpy (0) and of keras.layers (1)."""
    columns: dict[str, Any] = {"doc": [], "y": []}
    for number, module in enumerate((np, keras.layers)):
        found = {
            " ".join(part.split())
            for name in dir(module)
            for part in (inspect.getdoc(getattr(module, name)) or "").split("\n\n")
        }
        long = sorted(part for part in found if len(part) > 60)[:600]
        columns["doc"] += long
        columns["y"] += [number] * len(long)
    return columns
