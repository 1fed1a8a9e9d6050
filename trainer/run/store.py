"""An object store below one URL, as a run directory is kept in: whole objects, by name.

Requests that fail are made again for some seconds: a store is away for a moment now and then.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from fsspec.core import url_to_fs

from trainer import files
from trainer.again import again

# Stores whose objects appear whole and can be replaced; http:// only hands out.
SCHEMES = ("gs", "gcs", "s3", "s3a")

_Result = TypeVar("_Result")
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://")


def scheme_of(path: str) -> str | None:
    """Returns what stands before "://", in small letters; None for a plain path."""
    found = _SCHEME.match(path)
    return found[1].lower() if found else None


class Store:
    """The objects below `url`; names are relative to it.

    Every method raises one of `files.read_errors()` once a request has failed every time.
    """

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        self.url = f"{scheme.lower()}://{rest.rstrip('/')}"
        if not rest.strip("/"):
            raise ValueError("it names no bucket")
        # Another process writes there, too: a remembered listing would hide what it wrote.
        self._files, self._root = url_to_fs(self.url, use_listings_cache=False)

    def names(self) -> dict[str, Any]:
        """Returns each object's name, and a value that changes whenever its content does."""
        found: dict[str, Any] = self._asked(lambda: self._files.find(self._root, detail=True))
        start = len(self._root.rstrip("/")) + 1
        return {path[start:]: _version(info) for path, info in found.items() if path[start:]}

    def get(self, name: str, path: str) -> None:
        """Copies an object into the file `path`; FileNotFoundError if there is none."""
        self._asked(lambda: self._files.get_file(self._at(name), path))

    def put(self, path: str, name: str) -> None:
        """Makes or replaces an object."""
        self._asked(lambda: self._files.put_file(path, self._at(name)))

    def remove(self, name: str) -> None:
        """Removes an object, if it is there."""
        try:
            self._asked(lambda: self._files.rm_file(self._at(name)))
        except FileNotFoundError:
            return

    def _asked(self, request: Callable[[], _Result]) -> _Result:
        return again(request, self.url, files.is_passing, files.reason)

    def _at(self, name: str) -> str:
        return files.join(self._root, name)


def _version(info: dict[str, Any]) -> Any:
    """Stores name the hash of the content differently; size and time tell where there is none."""
    tag = info.get("ETag") or info.get("etag") or info.get("md5Hash")
    return tag or (info.get("size"), str(info.get("LastModified") or info.get("updated")))
