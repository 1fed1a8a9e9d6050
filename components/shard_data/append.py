"""`--append`: new files become new shards of a dataset that is there; no shard is written again.

What the dataset was made with holds for the new files, too: options, types, the label's classes,
the seed. Row numbers go on where they ended. Words that are new are added to the dictionaries, at
their end, so that the codes that are stored keep their meaning.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from components.shard_data import figures
from components.shard_data.arrange import keys
from components.shard_data.arrange.keys import Keys
from components.shard_data.figures.reading import ranges_of
from components.shard_data.inputs import SourceFile
from components.shard_data.options import COLUMN_TYPES, INCIDENTAL, ColumnType, ShardOptions
from components.shard_data.types.labels import Values
from components.shard_data.types.plan import Plan
from trainer.data.blocks import plan_storage
from trainer.data.dataset import Dataset
from trainer.data.manifest import Feature, Label, Manifest, Split
from trainer.data.statistics import Statistics
from trainer.errors import UsageError

# What is written anew.
_DESCRIPTIONS = ("manifest.json", "schema.pbtxt", "statistics.json", "rejected.jsonl")
_REMEDY = "shard all files again into another directory"


@dataclass(frozen=True)
class Base:
    """The dataset that is added to."""

    path: str
    manifest: Manifest
    statistics: Statistics

    @classmethod
    def open(cls, options: ShardOptions) -> Base:
        """Opens `options.output`.

        Raises:
          UsageError: there is no dataset, or it was made otherwise than the options say.
        """
        dataset = Dataset.open(options.output)
        manifest = Manifest.model_validate_json(
            Path(options.output, "manifest.json").read_text("utf-8")
        )
        made_with = manifest.source.get("options")
        if manifest.source_rows is None or not isinstance(made_with, dict):
            raise UsageError(f"--append: {options.output} does not say how it was made: {_REMEDY}")
        asked = options.identity()
        for name in options.model_fields_set - INCIDENTAL:
            if asked[name] != made_with.get(name):
                raise UsageError(
                    f"--append: {options.output} was made with {name} {made_with.get(name)!r}, "
                    f"not {asked[name]!r}: leave it out, or {_REMEDY}"
                )
        return cls(options.output, manifest, dataset.statistics)

    def options(self, options: ShardOptions) -> ShardOptions:
        """Returns how the new files are read: as the others were, their types known."""
        incidental = {name: getattr(options, name) for name in INCIDENTAL}
        made_with = self.manifest.source["options"]
        left_out = [e["name"] for e in self.manifest.dropped if e["what"] == "column"]
        named = [name for name in left_out if not name.startswith("#")]
        drop = list(dict.fromkeys([*made_with["drop"], *named]))
        return ShardOptions.parse({**made_with, **incidental, "drop": drop})

    @property
    def types(self) -> dict[str, ColumnType]:
        """The `--type` that text is read with, so that it becomes what the dataset has."""
        found: dict[str, ColumnType] = {}
        for feature in self.manifest.features:
            for kind in COLUMN_TYPES:
                if kind == (feature.logical or feature.dtype) and not feature.shape:
                    found[feature.name] = kind
        return found

    def new(
        self, files: Sequence[SourceFile], identities: Sequence[dict[str, Any]]
    ) -> tuple[list[SourceFile], list[dict[str, Any]]]:
        """Returns the files that the dataset does not have yet.

        Raises:
          UsageError: a file that it has was changed since.
        """
        there = {entry["path"]: entry["sha256"] for entry in self.manifest.source["files"]}
        known = set(there.values())
        fresh = []
        for file, identity in zip(files, identities, strict=True):
            if identity["sha256"] in known:
                continue
            if file.path in there:
                images = "put new images into a folder of their own, or " if file.images else ""
                raise UsageError(
                    f"--append: {file.path} was changed since it was read: {images}{_REMEDY}"
                )
            fresh.append((file, identity))
        return [file for file, _ in fresh], [identity for _, identity in fresh]

    @property
    def first_row(self) -> int:
        """The number of the next row."""
        return self.manifest.source_rows or 0

    @property
    def moments(self) -> Keys | None:
        """The last moment of each split but the last, where time parts."""
        found = self.manifest.split_rule.get("moments")
        return None if found is None else keys.of_moments(np.array(found, np.int64))

    def plans(
        self, found: Mapping[str, Plan], gathered: Collection[str], options: ShardOptions
    ) -> dict[str, Plan]:
        """Returns the plans of the dataset's columns, in its order, and of those that only part.

        Args:
          found: how the new files' columns that have values would be stored.
          gathered: all of the new files' columns.
          options: what the dataset was made with.

        Raises:
          UsageError: a column that it does not have, or lacks, or one of another type.
        """
        hidden = {*options.drop, *options.split_columns}
        features = {feature.name: feature for feature in self.manifest.features}
        for name in found:
            if name not in features and name not in hidden:
                raise UsageError(
                    f"--append: the dataset has no column {name!r}: leave it out of the new "
                    f"files, or {_REMEDY}"
                )
        for name in features:
            if name not in gathered and options.missing_columns == "error":
                raise UsageError(
                    f"--append: the new files lack column {name!r}, the dataset has it: {_REMEDY}, "
                    "with --missing-columns null"
                )
        plans = {name: _fitting(feature, found.get(name)) for name, feature in features.items()}
        return {**plans, **{name: plan for name, plan in found.items() if name not in features}}

    def label(self, values: Values) -> Label:
        """Returns the dataset's label.

        Raises:
          UsageError: the new files have a class that it has not.
        """
        label = self.manifest.label
        if label.classes is None:
            return label
        found = [] if values.distinct is None else list(values.distinct)
        new = [value for value in found if value not in label.classes]
        if new or values.distinct is None:
            shown = str(new[0]) if new else "of too many values"
            raise UsageError(
                f"--append: label {label.name} has a class that the dataset has not, {shown}: "
                f"{_REMEDY}"
            )
        return label

    def shard_counts(self, rows: Mapping[str, int]) -> dict[str, int]:
        """Returns how many shards the new rows of each split make: about as large as the others."""
        counts = {}
        for name, count in rows.items():
            there = self.manifest.splits.get(name)
            size = there.rows / len(there.shards) if there is not None else count
            counts[name] = min(count, max(1, round(count / size)))
        return counts

    @property
    def prefix(self) -> str:
        """What the new shards' names begin with."""
        return f"append-{len(self.manifest.source.get('appended', [])) + 1:04d}-"

    def link(self, root: Path) -> list[str]:
        """Gives the old shards second names below `root`, and all else that lies beside them.

        Returns the lines of `rejected.jsonl`.
        """
        described = shutil.ignore_patterns(*_DESCRIPTIONS)
        old = os.path.realpath(self.path)
        shutil.copytree(
            old, root, ignore=described, copy_function=os.link, symlinks=True, dirs_exist_ok=True
        )
        rejected = Path(old, "rejected.jsonl")
        return rejected.read_text("utf-8").splitlines() if rejected.exists() else []

    def figures(self, root: Path, joined: Manifest, new: Statistics) -> Statistics:
        """Returns the figures of old and new rows together: all shards are read."""
        if joined.layout == "rows":
            features = plan_storage(joined.features)
            joined = joined.model_copy(update={"features": features})
        ranges = ranges_of(self.statistics)
        for name, (low, high) in ranges_of(new).items():
            there = ranges.get(name, (low, high))
            ranges[name] = min(low, there[0]), max(high, there[1])
        dataset = Dataset(str(root), joined, self.statistics)
        return Statistics(
            splits={name: figures.of_dataset(dataset, name, ranges) for name in joined.splits}
        )

    def joined(self, manifest: Manifest, rows: int) -> Manifest:
        """Returns the description of the old and the new shards together."""
        old = self.manifest
        nullable = {feature.name: feature.nullable for feature in old.features}
        features = tuple(
            feature.model_copy(update={"nullable": feature.nullable or nullable[feature.name]})
            for feature in manifest.features
        )
        splits = dict(old.splits)
        for name, split in manifest.splits.items():
            there = splits.get(name, Split(rows=0, shards=()))
            splits[name] = Split(
                rows=there.rows + split.rows, shards=(*there.shards, *split.shards)
            )
        source = {
            **old.source,
            "files": [*old.source["files"], *manifest.source["files"]],
            "appended": [*old.source.get("appended", []), len(manifest.source["files"])],
        }
        return old.model_copy(
            update={
                "features": features,
                "splits": splits,
                "source": source,
                "source_rows": self.first_row + rows,
                "dropped": (*old.dropped, *(e for e in manifest.dropped if e["what"] == "rows")),
                "notes": tuple(dict.fromkeys((*old.notes, *manifest.notes))),
            }
        )


def _fitting(feature: Feature, plan: Plan | None) -> Plan:
    kind = feature.logical or feature.dtype
    if plan is None:  # no value in any new row
        return Plan(feature.name, kind, feature.shape, feature.dictionary)
    fits = plan.kind == kind or (plan.kind == "int64" and kind == "float32")
    if not fits or plan.shape != feature.shape:
        raise UsageError(
            f"--append: column {feature.name} is {plan.kind}, in the dataset {kind}: write it as "
            f"it was, or {_REMEDY}"
        )
    if feature.dictionary is None:
        return replace(plan, kind=kind, words=None)
    if plan.words is None:
        raise UsageError(
            f"--append: column {feature.name} has thousands of different texts, the dataset keeps "
            f"a list of {len(feature.dictionary):,}: {_REMEDY}"
        )
    known = set(feature.dictionary)
    new = tuple(word for word in plan.words if word not in known)
    return replace(plan, words=(*feature.dictionary, *new))
