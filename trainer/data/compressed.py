"""Shards that are compressed as a whole: one zlib or zstd stream around the records.

zlib is what TensorFlow's readers call compression_type="ZLIB"; zstd packs as small in a fraction
of the time, and only we read it.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Literal, Protocol, cast

from trainer.data.records import DamagedRecord

Compression = Literal["zlib", "zstd"]

_CHUNK_BYTES = 1 << 18


class _Decompressor(Protocol):
    eof: bool

    def decompress(self, data: bytes) -> bytes: ...


class _Unpacked(io.RawIOBase):
    """The bytes of a compressed stream; it can be read forwards only."""

    def __init__(self, file: BinaryIO, decompressor: _Decompressor) -> None:
        self._file = file
        self._decompressor = decompressor
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            if self._decompressor.eof:
                return 0
            packed = self._file.read(_CHUNK_BYTES)
            if not packed:
                raise DamagedRecord("the compressed stream is cut off")
            self._rest = self._inflate(packed)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def _inflate(self, packed: bytes) -> bytes:
        try:
            return self._decompressor.decompress(packed)
        except Exception as error:
            if type(error).__name__ in ("error", "ZstdError"):
                raise DamagedRecord(f"the compressed stream is damaged ({error})") from None
            raise


def unpacked(file: BinaryIO, compression: Compression | None) -> BinaryIO:
    """Returns the records of a shard, whatever packs them.

    Reading raises DamagedRecord where the stream is cut or altered.
    """
    if compression is None:
        return file
    if compression == "zlib":
        decompressor = cast(_Decompressor, zlib.decompressobj())
    else:
        import zstandard

        decompressor = cast(_Decompressor, zstandard.ZstdDecompressor().decompressobj())
    return cast(BinaryIO, io.BufferedReader(_Unpacked(file, decompressor), _CHUNK_BYTES))


@contextmanager
def packing(
    write: Callable[[bytes | bytearray], object], compression: Compression | None
) -> Iterator[Callable[[bytes | bytearray], object]]:
    """Gives a function that takes the records' bytes and hands them on to `write`, packed."""
    if compression is None:
        yield write
        return
    if compression == "zlib":
        packer: Any = zlib.compressobj()
    else:
        import zstandard

        packer = zstandard.ZstdCompressor().compressobj()
    yield lambda data: write(packer.compress(data))
    write(packer.flush())
