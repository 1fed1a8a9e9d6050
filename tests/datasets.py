"""Small real dataset directories for tests, written through the same block layout as sharding."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from trainer.data.blocks import NULL_INT, Column, encode_block, pack, plan_storage
from trainer.data.dataset import Dataset
from trainer.data.manifest import Feature, Label, LabelKind, Manifest, Shard, Split
from trainer.data.records import frame
from trainer.data.statistics import FeatureStatistics, SplitStatistics, Statistics

COLORS = ("blue", "green", "red")
FRACTIONS = {"train": 0.8, "eval": 0.1, "test": 0.1}


def make_dataset(
    path: Path | str,
    rows: int = 2000,
    kind: LabelKind = "binary",
    shards: int = 4,
    seed: int = 0,
    block_rows: int = 64,
    weights: bool = False,
) -> Dataset:
    """Writes a dataset whose label depends on x0, n and color, and opens it.

    weights: a column w, from 0 to 3, that the label does not depend on.
    """
    root = Path(path)
    rng = np.random.default_rng(seed)
    columns, classes = _columns(rng, rows, kind)
    label_dtype: Any = "float32" if kind == "regression" else "int64"
    weight = (Feature(name="w", dtype="float32"),) if weights else ()
    if weights:
        columns["w"] = Column(rng.integers(0, 4, rows).astype(np.float32))
    features = plan_storage(
        (
            Feature(name="x0", dtype="float32", nullable=True),
            Feature(name="x1", dtype="float32"),
            Feature(name="n", dtype="int64", nullable=True),
            Feature(name="color", dtype="string", nullable=True, dictionary=COLORS),
            Feature(name="y", dtype=label_dtype),
            *weight,
        )
    )
    order = rng.permutation(rows)
    splits: dict[str, Split] = {}
    statistics: dict[str, SplitStatistics] = {}
    start = 0
    for name, fraction in FRACTIONS.items():
        chosen = order[start : start + int(rows * fraction)]
        start += len(chosen)
        parts = np.array_split(chosen, shards if name == "train" else min(shards, 2))
        written = tuple(
            _write_shard(root, f"{name}/{i:05d}-of-{len(parts):05d}.tfrecord", features, columns,
                         part, block_rows)
            for i, part in enumerate(parts)
        )  # fmt: skip
        splits[name] = Split(rows=len(chosen), shards=written)
        statistics[name] = _statistics(columns, chosen)
    manifest = Manifest(
        layout="blocks",
        block_rows=block_rows,
        features=features,
        label=Label(name="y", kind=kind, classes=classes),
        splits=splits,
        seed=seed,
        split_rule={"fractions": FRACTIONS},
        source={"made": "tests"},
    )
    (root / "statistics.json").write_text(Statistics(splits=statistics).model_dump_json())
    (root / "manifest.json").write_text(json.dumps(manifest.model_dump(mode="json")))
    return Dataset.open(str(root))


def _columns(
    rng: np.random.Generator, rows: int, kind: LabelKind
) -> tuple[dict[str, Column], tuple[int, ...] | None]:
    x0 = rng.normal(2, 3, rows).astype(np.float32)
    x1 = rng.normal(size=rows).astype(np.float32)
    n = rng.integers(0, 10, rows)
    color = rng.integers(0, len(COLORS), rows).astype(np.int32)
    signal = (x0 - 2) / 3 + 0.3 * (n - 4.5) + 0.7 * (color - 1) + 0.5 * x1
    noisy = signal + rng.normal(0, 0.5, rows)
    classes: tuple[int, ...] | None
    if kind == "regression":
        y, classes = noisy.astype(np.float32), None
    elif kind == "binary":
        y, classes = (noisy > 0).astype(np.int64), (0, 1)
    else:
        y, classes = np.digitize(noisy, [-1, 1]).astype(np.int64) + 5, (5, 6, 7)
    x0[rng.random(rows) < 0.05] = np.nan
    n[rng.random(rows) < 0.05] = NULL_INT
    color[rng.random(rows) < 0.05] = -1
    columns = {"x0": x0, "x1": x1, "n": n, "color": color, "y": y}
    return {name: Column(values) for name, values in columns.items()}, classes


def _write_shard(
    root: Path,
    name: str,
    features: tuple[Feature, ...],
    columns: dict[str, Column],
    ids: np.ndarray[Any, np.dtype[np.int64]],
    block_rows: int,
) -> Shard:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = [ids[i : i + block_rows] for i in range(0, len(ids), block_rows)]
    rows = len(columns[features[0].name].values)
    block = pack(features, columns, np.arange(rows))
    data = b"".join(frame(encode_block(features, block.take(part))) for part in parts)
    path.write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    return Shard(path=name, rows=len(ids), records=len(parts), bytes=len(data), sha256=digest)


def _statistics(
    columns: dict[str, Column], ids: np.ndarray[Any, np.dtype[np.int64]]
) -> SplitStatistics:
    figures = {}
    for name, column in columns.items():
        values: Any = column.take(ids).values
        if name == "color":
            counts = np.bincount(values[values >= 0], minlength=len(COLORS))
            ranked = sorted(zip(COLORS, counts.tolist(), strict=True), key=lambda p: (-p[1], p[0]))
            figures[name] = FeatureStatistics(
                count=int(counts.sum()),
                missing=int((values < 0).sum()),
                distinct=len(COLORS),
                vocabulary=tuple(ranked),
            )
            continue
        there = values[~np.isnan(values) if values.dtype == np.float32 else values != NULL_INT]
        distinct, times = np.unique(there, return_counts=True)
        figures[name] = FeatureStatistics(
            count=len(there),
            missing=len(values) - len(there),
            distinct=len(distinct),
            mean=float(there.mean()),
            std=float(there.std()),
            min=float(there.min()),
            max=float(there.max()),
            quantiles=tuple(float(q) for q in np.quantile(there, np.linspace(0, 1, 11))),
            vocabulary=None if values.dtype == np.float32 else _ranked(distinct, times),
        )
    return SplitStatistics(rows=len(ids), features=figures)


def _ranked(distinct: Any, times: Any) -> tuple[tuple[str, int], ...]:
    order = np.argsort(-times, kind="stable")
    return tuple((str(distinct[i]), int(times[i])) for i in order)
