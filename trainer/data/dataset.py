"""A dataset directory, opened: its manifest and statistics, and the check of its shards' sizes."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError

from trainer import files
from trainer.data.blocks import plan_storage
from trainer.data.manifest import FORMAT_VERSION, Manifest, Split
from trainer.data.statistics import SplitStatistics, Statistics
from trainer.errors import UsageError


@dataclass(frozen=True)
class Dataset:
    """What `Task.build` learns about the data: columns, label, sizes and statistics."""

    path: str
    manifest: Manifest
    statistics: Statistics

    @classmethod
    def open(cls, path: str) -> Dataset:
        """Reads manifest.json and statistics.json of `path` (a directory or URL).

        Raises:
          UsageError: there is no dataset, or it is one of another format.
        """
        try:
            manifest = Manifest.model_validate_json(
                files.read_text(files.join(path, "manifest.json"))
            )
            statistics = Statistics.model_validate_json(
                files.read_text(files.join(path, "statistics.json"))
            )
        except FileNotFoundError as error:
            raise UsageError(
                f"{path} is not a dataset directory (no {error.filename or error!s}): "
                "make one with `castell shard SOURCE --output DIR --label COLUMN`"
            ) from None
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise UsageError(
                f"{path}: the description is not readable ({where}: {first['msg']})"
            ) from None
        if manifest.format_version != FORMAT_VERSION:
            raise UsageError(
                f"{path} has format version {manifest.format_version}, this castell reads "
                f"{FORMAT_VERSION}: shard the data again"
            )
        if manifest.layout == "rows":  # read into blocks, so that the rest knows one layout
            manifest = manifest.model_copy(update={"features": plan_storage(manifest.features)})
        return cls(path, manifest, statistics)

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

    def check_sizes(self, *splits: str) -> None:
        """Compares each shard's size with the manifest, before anything reads it.

        Raises:
          UsageError: naming the first shard that is missing, cut or altered in size.
        """
        for name in splits:
            for shard in self.split(name).shards:
                path = files.join(self.path, shard.path)
                try:
                    found = files.size(path)
                except FileNotFoundError:
                    raise UsageError(f"shard {path} is missing: shard the data again") from None
                if found != shard.bytes:
                    raise UsageError(
                        f"shard {path} has {found} bytes, the manifest says {shard.bytes}: "
                        "it was cut or altered; copy it again or shard the data again"
                    )
