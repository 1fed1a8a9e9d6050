"""`manifest.json`: what a dataset directory holds. Written last: where it is, the rest is whole.

Only the description lives here; `blocks` knows the bytes, `dataset` opens and checks a directory.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from trainer.data.compressed import Compression
from trainer.errors import UsageError, suggestion

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
    # What values are: "bool", "date" (days), "timestamp" (microseconds UTC), …; "bytes": no text.
    logical: str | None = None
    # Values of a dictionary-coded string column, sorted; a block holds indices into it.
    dictionary: tuple[str, ...] | None = None
    storage: Storage | None = None


_OUTPUTS = {"binary": "probability", "multiclass": "probabilities", "regression": "prediction"}


class Label(_Frozen):
    """The label column (also listed among `features`).

    `classes` are the sorted values (binary: [negative, positive]); None for regression.
    """

    name: str
    kind: LabelKind
    classes: tuple[str, ...] | tuple[int, ...] | None = None

    @property
    def output(self) -> str:
        """What evaluation reads of the outputs of `Task.serve`."""
        return _OUTPUTS[self.kind]


class Shard(_Frozen):
    """One TFRecord file, `path` relative to the dataset directory."""

    path: str
    rows: int = Field(ge=0)
    records: int = Field(ge=0)
    bytes: int = Field(ge=0)
    sha256: str

    @field_validator("path")
    @classmethod
    def _inside(cls, path: str) -> str:
        if path.startswith("/") or "://" in path or ".." in path.split("/"):
            raise ValueError(f"{path} is not inside the dataset directory")
        return path


class Split(_Frozen):
    """The shards of one split, in order."""

    rows: int
    shards: tuple[Shard, ...]

    @model_validator(mode="after")
    def _counted(self) -> Self:
        if self.rows != (rows := sum(shard.rows for shard in self.shards)):
            raise ValueError(f"{self.rows} rows, but its shards have {rows}")
        return self


class Manifest(_Frozen):
    """The whole description; `fingerprint` identifies the content that training depends on."""

    format_version: int = FORMAT_VERSION
    layout: Layout
    block_rows: int = Field(gt=0)
    # Of each shard as a whole; its size and hash are those of the packed file.
    compression: Compression | None = None
    features: tuple[Feature, ...]
    label: Label
    splits: dict[str, Split]
    seed: int
    split_rule: dict[str, Any]
    source: dict[str, Any]
    # Rows of all sources, those that were left out too: where row numbers go on.
    source_rows: int | None = None
    dropped: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    # Chosen by a run, not by the data: how much a row counts.
    weight_column: str | None = None

    @model_validator(mode="after")
    def _columns_fit(self) -> Self:
        names = [feature.name for feature in self.features]
        if len(set(names)) != len(names):
            raise ValueError("two features have one name")
        if self.label.name not in names:
            raise ValueError(f"the label {self.label.name!r} is not among the features")
        return self

    def feature(self, name: str) -> Feature:
        """Returns the column called `name`; UsageError naming those there are."""
        for feature in self.features:
            if feature.name == name:
                return feature
        known = [feature.name for feature in self.features]
        raise UsageError(
            f"the data has no column {name!r}{suggestion(name, known)} (it has {', '.join(known)})"
        )

    @property
    def inputs(self) -> tuple[Feature, ...]:
        """The columns without the label and the weight."""
        return tuple(
            f for f in self.features if f.name not in (self.label.name, self.weight_column)
        )

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
