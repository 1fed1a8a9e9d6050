"""The table of `--labels`: what is on each image of a folder."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from components.shard_data import formats
from components.shard_data.formats import Piece, images
from components.shard_data.options import ShardOptions
from trainer.errors import UsageError

FILE = "file"


@dataclass(frozen=True)
class Labels:
    """`columns` of the table but for `file`; `rows`: their values by image; where these stand."""

    path: str
    columns: tuple[str, ...]
    rows: dict[str, list[str | None]]
    places: dict[str, Callable[[], str]]

    def of(self, image: str) -> list[str | None] | None:
        """Returns what the table says of an image, by its path within the folder."""
        return self.rows.get(_key(image))

    def check(self, folder: str, found: Sequence[str]) -> None:
        """Raises UsageError if the table names an image that is not there."""
        there = set(map(_key, found))
        for image, place in self.places.items():
            if image not in there:
                raise UsageError(f"{place()}: {folder} has no image {image!r}")


def read(path: str, pieces: Sequence[Piece], options: ShardOptions) -> Labels:
    """Returns the table.

    Raises:
      UsageError: it lacks a column, names no file in a row, or one twice.
    """
    columns: tuple[str, ...] = ()
    rows: dict[str, list[str | None]] = {}
    places: dict[str, Callable[[], str]] = {}
    for piece in pieces:
        found = formats.read(piece, options)
        texts = {name: _texts(path, name, values) for name, values in found.columns.items()}
        for needed in (FILE, images.LABEL):
            if needed not in texts:
                raise UsageError(
                    f"--labels {path}: there is no column {needed} (it has {', '.join(texts)})"
                )
        columns = tuple(name for name in texts if name != FILE)
        for i, image in enumerate(texts[FILE]):
            # Where a row stands is slow to find, and only errors say it.
            place = partial(formats.place, piece, int(found.kept[i]), options)
            key = _key(image or "")
            if not key:
                raise UsageError(f"{place()}: no file is named")
            if key in rows:
                raise UsageError(f"{place()}: {image} is named a second time")
            rows[key] = [texts[name][i] for name in columns]
            places[key] = place
    for clash in (images.IMAGE, images.PATH):
        if clash in columns:
            raise UsageError(f"--labels {path}: a column must not be called {clash}: rename it")
    return Labels(path, columns, rows, places)


def _key(path: str) -> str:
    """One text for a path: some systems write é as one character, others as two."""
    return unicodedata.normalize("NFC", path.replace("\\", "/").removeprefix("./"))


def _texts(path: str, name: str, values: pa.ChunkedArray) -> list[str | None]:
    try:
        texts: list[str | None] = values.cast(pa.string()).to_pylist()
    except pa.ArrowException:
        raise UsageError(f"--labels {path}: column {name} is {values.type}, not text") from None
    return texts
