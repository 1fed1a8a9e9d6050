"""A folder of images made ready: which of its files are images, and what is on each.

The class of an image is the name of its folder, the first one below the source. With `--labels`, a
table says it, and the folders say nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fsspec.core import url_to_fs

from components.shard_data.formats import Piece, images
from components.shard_data.formats.pixels import kind_of, require_pillow
from components.shard_data.inputs import unpack
from components.shard_data.inputs.find import SourceFile
from components.shard_data.inputs.kinds import HEAD_BYTES, is_image, is_table
from components.shard_data.inputs.labels import Labels
from trainer import files
from trainer.errors import UsageError


@dataclass(frozen=True)
class _File:
    """A file's path below the folder and on this machine, its size, and how it begins."""

    name: str
    path: str
    size: int
    head: bytes

    @property
    def is_image(self) -> bool:
        """Whether it is one, or called one: then it must be one."""
        return is_image(self.name) or kind_of(self.head) is not None


def index(file: SourceFile, folder: Path, labels: Labels | None) -> Piece:
    """Writes the index of a folder's images into a directory; those of a URL are copied there.

    Raises:
      UsageError: there is no image, or one without class; a label's image is not there; a file
        cannot be read.
    """
    require_pillow()
    folder.mkdir(parents=True, exist_ok=True)
    every = list(_local(file, folder))
    found = [one for one in every if one.is_image]
    others = [one.name for one in every if not one.is_image]
    if not found:
        raise UsageError(f"{file.path} holds no image")
    notes = _of_others(file.path, others, labels)
    columns: tuple[str, ...] = (images.LABEL,)
    entries: list[tuple[_File, list[str | None]]]
    if labels is None:
        entries = [(one, [_class(file.path, one.name)]) for one in found]
        notes += _of_empty_classes(file.path, [one.name for one in found])
    else:
        columns = labels.columns
        labels.check(file.path, [one.name for one in found])
        entries = [(one, values) for one in found if (values := labels.of(one.name)) is not None]
        if len(entries) < len(found):
            notes.append(
                f"{file.path}: left out, as {labels.path} does not name them: "
                f"{len(found) - len(entries):,} image(s)"
            )
    target = folder / "images.jsonl"
    with unpack.writing(target):
        images.write_index(
            target, notes, ((one.name, one.path, one.size, values) for one, values in entries)
        )
    kinds = tuple((name, "string") for name in columns)
    return Piece(file.path, "images", str(target), 0, 0, first=True, columns=kinds)


def _local(file: SourceFile, folder: Path) -> Iterator[_File]:
    is_remote = files.is_remote(file.path)
    root = url_to_fs(file.path)[1]
    for number, name in enumerate(file.images):
        path = files.join(root, name)
        if is_remote:
            path = str(folder / f"{number:07d}")
            unpack.fetch(files.join(file.path, name), Path(path))
        try:
            with open(path, "rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                yield _File(name, path, size, stream.read(HEAD_BYTES))
        except OSError as error:
            raise UsageError(
                f"cannot read {files.join(file.path, name)}: {error.strerror or error}"
            ) from None


def _of_others(folder: str, others: Sequence[str], labels: Labels | None) -> list[str]:
    """Says which files are left out; tables are no small matter."""
    tables = [name for name in others if is_table(name)]
    if tables and labels is None:
        raise UsageError(
            f"{folder} holds images and tables ({tables[0]}): name the tables by a glob, or the "
            f"one that says what is on the images by --labels"
        )
    others = [name for name in others if labels is None or files.join(folder, name) != labels.path]
    if not others:
        return []
    return [
        f"{folder}: left out, as no JPEG, PNG, GIF or BMP: {len(others):,} file(s), the first is "
        f"{others[0]}"
    ]


def _class(folder: str, name: str) -> str:
    first, slash, _ = name.partition("/")
    if not slash:
        raise UsageError(
            f"{folder}/{name} is in no folder of a class: the images of a class go into a folder "
            "with its name, or a table says what is on them (--labels FILE with the columns file "
            "and label)"
        )
    return first


def _of_empty_classes(folder: str, found: Sequence[str]) -> list[str]:
    filesystem, root = url_to_fs(folder)
    if not filesystem.isdir(root):
        return []
    entries = filesystem.ls(root, detail=True)
    folders = {
        e["name"].rstrip("/").rpartition("/")[2] for e in entries if e["type"] == "directory"
    }
    full = {name.partition("/")[0] for name in found}
    return [
        f"{folder}: class {name} has no image"
        for name in sorted(folders - full)
        if not name.startswith((".", "_"))
    ]
