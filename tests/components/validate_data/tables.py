"""Small tables of known distributions, sharded; and a table with something wrong in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from components.shard_data.options import ShardOptions
from components.shard_data.shard import shard
from components.validate_data.options import ValidateOptions
from components.validate_data.validate import validate
from components.validate_data.validation import Finding, Validation

ROWS = 6000
Columns = dict[str, Any]
# Numbers of many shapes: far from 0 and around it, with heavy tails, many zeros, whole and few.
NUMBERS = ("normal", "small", "heavy", "uniform", "zeros", "negative", "count", "wide")


def columns(seed: int, rows: int = ROWS) -> Columns:
    """Returns columns [rows], the same distribution for every seed."""
    rng = np.random.default_rng(seed)
    heavy = rng.lognormal(0, 2, rows)
    normal = rng.normal(0, 1, rows)
    words = np.array([f"w{i}" for i in range(40)])
    rare = np.array([f"id{i}" for i in range(3000)])
    weights = 1 / np.arange(1, 41)
    return {
        "normal": normal,
        "small": rng.normal(0, 1e-3, rows) + 5e-3,
        "heavy": heavy,
        "uniform": rng.random(rows),
        "zeros": np.where(rng.random(rows) < 0.4, 0.0, rng.gamma(2, 30, rows)),
        "negative": -rng.gamma(3, 5, rows),
        "count": rng.poisson(4, rows),
        "wide": rng.integers(1000, 10**6, rows),
        "word": words[rng.choice(40, rows, p=weights / weights.sum())],
        "rare": rare[rng.zipf(1.3, rows) % 3000],
        "gaps": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(50, 9, rows)),
        "y": (normal + rng.normal(0, 1, rows) > 0).astype(np.int64),
    }


def scaled(found: Columns, name: str, seed: int) -> tuple[Columns, set[int]]:
    """Returns the columns with one multiplied by 1000 in 5 % of its rows, and which rows."""
    rows = np.random.default_rng(seed + 1000).random(len(found[name])) < 0.05
    changed = np.where(rows, found[name] * 1000, found[name])
    return {**found, name: changed}, set(np.flatnonzero(rows).tolist())


def made(place: Path, found: Columns, **options: Any) -> str:
    """Shards the columns into `place` and returns the dataset's path."""
    place.mkdir(parents=True, exist_ok=True)
    source = place / "a.parquet"
    pq.write_table(pa.table({n: pa.array(v, from_pandas=True) for n, v in found.items()}), source)
    given = {"sources": [str(source)], "output": str(place / "data"), "label": "y", **options}
    shard(ShardOptions.parse(given))
    return str(place / "data")


def judged(data: str, **options: Any) -> Validation:
    """Validates a dataset."""
    return validate(ValidateOptions(data=data, **options))


def broken(validation: Validation, rule: str) -> list[Finding]:
    """Returns the findings of one rule."""
    return [f for f in validation.findings if f.rule == rule]
