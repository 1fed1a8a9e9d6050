"""`manifest.json`: what a dataset directory holds. Written last: where it is, the rest is whole.

Only the description lives here; `blocks` knows the bytes, `dataset` opens and checks a directory.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

FORMAT_VERSION = 1

DType = Literal["float32", "int64", "string"]
LabelKind = Literal["binary", "multiclass", "regression"]
Layout = Literal["blocks", "rows"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Storage(_Frozen):
    """Where a column stands inside a block record (layout `blocks` only).

    `packed`: column `index` of the row-major matrix under `key` (`float32`, `int64` or `code`).
    `loose`: keys of its own (`bytes/<name>`, `fixed/<name>`, `values/<name>` + `splits/<name>`).
    """

    kind: Literal["packed", "loose"]
    key: str
    index: int = 0


class Feature(_Frozen):
    """One column. `shape`: () scalar, (n,) fixed-size list, (None,) variable-length list."""

    name: str
    dtype: DType
    shape: tuple[int | None, ...] = ()
    nullable: bool = False
    # What the numbers meant before: "bool", "date" (days), "timestamp" (microseconds UTC), ...
    logical: str | None = None
    # Values of a dictionary-coded string column, sorted; a block holds indices into it.
    dictionary: tuple[str, ...] | None = None
    storage: Storage | None = None


class Label(_Frozen):
    """The label column (also listed among `features`).

    `classes` are the sorted values (binary: [negative, positive]); None for regression.
    """

    name: str
    kind: LabelKind
    classes: tuple[str, ...] | tuple[int, ...] | None = None


class Shard(_Frozen):
    """One TFRecord file, `path` relative to the dataset directory."""

    path: str
    rows: int
    records: int
    bytes: int
    sha256: str


class Split(_Frozen):
    """The shards of one split, in order."""

    rows: int
    shards: tuple[Shard, ...]


class Manifest(_Frozen):
    """The whole description; `fingerprint` identifies the content that training depends on."""

    format_version: int = FORMAT_VERSION
    layout: Layout
    block_rows: int
    features: tuple[Feature, ...]
    label: Label
    splits: dict[str, Split]
    seed: int
    split_rule: dict[str, Any]
    source: dict[str, Any]
    dropped: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()

    def feature(self, name: str) -> Feature:
        """Returns the column called `name`; KeyError if there is none."""
        for feature in self.features:
            if feature.name == name:
                return feature
        raise KeyError(name)

    @property
    def inputs(self) -> tuple[Feature, ...]:
        """The columns without the label."""
        return tuple(f for f in self.features if f.name != self.label.name)

    @property
    def rows(self) -> int:
        """Rows over all splits."""
        return sum(split.rows for split in self.splits.values())

    @property
    def fingerprint(self) -> str:
        """sha256 over columns, label and shard hashes: equal for equal training data."""
        content = {
            "features": [f.model_dump(mode="json", exclude={"storage"}) for f in self.features],
            "label": self.label.model_dump(mode="json"),
            "splits": {
                name: [shard.sha256 for shard in split.shards]
                for name, split in sorted(self.splits.items())
            },
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
