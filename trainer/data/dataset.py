"""A dataset directory, opened: its manifest and statistics, and the check of its shards' sizes."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from trainer import files
from trainer.data.blocks import plan_storage
from trainer.data.manifest import FORMAT_VERSION, Feature, Label, Manifest, Shard, Split
from trainer.data.staging import Cache
from trainer.data.statistics import SplitStatistics, Statistics
from trainer.errors import UsageError

# A store answers a question in tens of milliseconds, and takes many at once.
_QUESTIONS_AT_ONCE = 16

_Content = TypeVar("_Content", bound=BaseModel)


@dataclass(frozen=True)
class Dataset:
    """What `Task.build` learns about the data: columns, label, sizes and statistics.

    class_weights: how much a training row counts, by the index of its class; None: 1. cache: where
    copies of remote shards are kept; None: they are read in place.
    """

    path: str
    manifest: Manifest
    statistics: Statistics
    class_weights: tuple[float, ...] | None = None
    cache: Cache | None = None

    @classmethod
    def open(cls, path: str) -> Dataset:
        """Reads manifest.json and statistics.json of `path` (a directory or URL).

        Raises:
          UsageError: there is no dataset, or it is one of another format.
        """
        text = _read(path, "manifest.json")
        _check_version(path, text)
        manifest = _parse(path, "manifest.json", Manifest, text)
        statistics = _parse(path, "statistics.json", Statistics, _read(path, "statistics.json"))
        if manifest.layout == "rows":  # read into blocks, so that the rest knows one layout
            manifest = manifest.model_copy(update={"features": plan_storage(manifest.features)})
        return cls(path, manifest, statistics)

    @classmethod
    def nothing(cls) -> Dataset:
        """Returns what a task that feeds itself is built with."""
        label = Feature(name="label", dtype="float32")
        manifest = Manifest(
            layout="blocks", block_rows=1, features=plan_storage([label]),
            label=Label(name=label.name, kind="regression"),
            splits={}, seed=0, split_rule={}, source={},
        )  # fmt: skip
        return cls("", manifest, Statistics(splits={}))

    @property
    def is_nothing(self) -> bool:
        """Whether no data was named."""
        return not self.manifest.splits

    def split(self, name: str) -> Split:
        """Returns a split; UsageError naming those there are."""
        try:
            return self.manifest.splits[name]
        except KeyError:
            there = ", ".join(sorted(self.manifest.splits))
            raise UsageError(f"split {name!r} is not in {self.path}: it has {there}") from None

    def split_statistics(self, name: str = "train") -> SplitStatistics:
        """Returns the figures of a split."""
        self.split(name)
        return self.statistics.splits[name]

    def check_statistics(self, split: str) -> None:
        """Raises UsageError if statistics.json says nothing of one of the columns in `split`."""
        there = self.statistics.splits.get(split)
        for feature in self.manifest.features:
            if there is None or feature.name not in there.features:
                raise UsageError(
                    f"{self.path}: statistics.json says nothing of column {feature.name!r} in "
                    f"split {split!r}: shard the data again"
                )

    def check_sizes(self, *splits: str) -> None:
        """Compares each shard's size with the manifest, before anything reads it.

        Raises:
          UsageError: naming the first shard that is missing, cut or altered in size.
        """
        shards = [shard for name in splits for shard in self.split(name).shards]
        if not files.is_remote(self.path):
            for shard in shards:
                self._check_size(shard)
            return
        with ThreadPoolExecutor(_QUESTIONS_AT_ONCE) as pool:
            list(pool.map(self._check_size, shards))

    def _check_size(self, shard: Shard) -> None:
        path = files.join(self.path, shard.path)
        try:
            found = files.size(path)
        except FileNotFoundError:
            raise UsageError(f"shard {path} is missing: shard the data again") from None
        except files.read_errors() as error:
            why = files.reason(error)
            raise UsageError(f"shard {path} cannot be read: {why}") from None
        if found != shard.bytes:
            raise UsageError(
                f"shard {path} has {found} bytes, the manifest says {shard.bytes}: "
                "it was cut or altered; copy it again or shard the data again"
            )


def _read(path: str, name: str) -> str:
    try:
        return files.read_text(files.join(path, name))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(
            f"{path} is not a dataset directory (no {error.filename or error!s}): "
            "make one with `castell shard SOURCE --output DIR --label COLUMN`"
        ) from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: {name} is not readable (not UTF-8 text)") from None
    # Also a URL's scheme that fsspec does not know, or a package that it would need for it.
    except files.read_errors(ValueError, ImportError) as error:
        raise UsageError(f"{path}: {name} cannot be read: {files.reason(error)}") from None


def _check_version(path: str, text: str) -> None:
    """Looked at before the rest, which may be of a shape that only the other version knows."""
    try:
        version = json.loads(text).get("format_version", FORMAT_VERSION)
    except (ValueError, AttributeError):
        return  # not even a manifest: `_parse` says what is wrong
    if version != FORMAT_VERSION:
        raise UsageError(
            f"{path} has format version {version}, this castell reads {FORMAT_VERSION}: "
            "shard the data again"
        )


def _parse(path: str, name: str, kind: type[_Content], text: str) -> _Content:
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join((name, *(str(part) for part in first["loc"])))
        message = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{path}: the description is not readable ({where}: {message})") from None
