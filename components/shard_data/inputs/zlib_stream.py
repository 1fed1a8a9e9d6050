"""A zlib stream without a gzip header, read in pieces: TensorFlow's TFRecord compression ZLIB."""

from __future__ import annotations

import io
import zlib
from typing import Any, BinaryIO

_CHUNK_BYTES = 1 << 18


def open_zlib(source: BinaryIO) -> io.BufferedReader:
    """Returns what `source` holds, decompressed.

    Raises:
      EOFError, zlib.error: while reading, if it is cut off or damaged.
    """
    return io.BufferedReader(_Zlib(source), _CHUNK_BYTES)


class _Zlib(io.RawIOBase):
    def __init__(self, source: BinaryIO) -> None:
        super().__init__()
        self._source = source
        self._decompress = zlib.decompressobj()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._decompress.eof:
            packed = self._decompress.unconsumed_tail or self._source.read(_CHUNK_BYTES)
            if not packed:
                raise EOFError("the stream ends before its end mark")
            data = self._decompress.decompress(packed, len(buffer))
            if data:
                buffer[: len(data)] = data
                return len(data)
        return 0
