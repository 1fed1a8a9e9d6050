"""TFRecord framing: length, masked crc32c of the length, payload, masked crc32c of the payload.

Our own reader, because TensorFlow's takes a file cut at a record boundary for a complete one and
needs TensorFlow; here every cut and every flipped bit is a `DamagedRecord`.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO

import google_crc32c

_HEADER = struct.Struct("<QI")
_CRC = struct.Struct("<I")
_MASK_DELTA = 0xA282EAD8
# A length beyond this is damage, not data: protobuf itself ends at 2 GiB.
_LARGEST_RECORD = 1 << 31
# Small records are taken from the file by the hundred.
_CHUNK_BYTES = 1 << 18


class DamagedRecord(Exception):
    """The file ends inside a record or a checksum differs; the text says which and where."""


def masked(crc: Any) -> Any:
    """What TFRecord stores of a crc32c: one, or an array of uint32."""
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def masked_crc(data: bytes) -> int:
    """The masked crc32c that TFRecord stores."""
    return int(masked(google_crc32c.value(data)))


def frame(payload: bytes) -> bytes:
    """One record as it stands in the file."""
    return b"".join((header(len(payload)), payload, _CRC.pack(masked_crc(payload))))


# Records of one kind have few lengths.
@functools.lru_cache(1 << 12)
def header(size: int) -> bytes:
    """What stands before a payload of `size` bytes."""
    length = struct.pack("<Q", size)
    return length + _CRC.pack(masked_crc(length))


def read_records(file: BinaryIO, skip: int = 0) -> Iterator[bytes]:
    """Yields payloads, checked, after passing over the first `skip` records.

    Raises:
      DamagedRecord: on a truncated record or a checksum that differs.
    """
    held, at, number = b"", 0, 0
    while True:
        if len(held) - at < _HEADER.size:
            held, at = _filled(file, held[at:], _HEADER.size), 0
            if not held:
                return
            if len(held) < _HEADER.size:
                raise DamagedRecord(f"record {number} is cut off in its header")
        length, crc = _HEADER.unpack_from(held, at)
        if masked_crc(held[at : at + 8]) != crc or length > _LARGEST_RECORD:
            raise DamagedRecord(f"record {number}: the checksum of its length differs")
        at += _HEADER.size
        end = at + length
        if number < skip:
            if (beyond := end + _CRC.size - len(held)) > 0:
                _pass_over(file, beyond)
                held, at = b"", 0
            else:
                at = end + _CRC.size
        else:
            if len(held) < end + _CRC.size:
                held, at, end = _filled(file, held[at:], length + _CRC.size), 0, length
                if len(held) < end + _CRC.size:
                    raise DamagedRecord(f"record {number} is cut off")
            payload = held[at:end]
            if masked_crc(payload) != _CRC.unpack_from(held, end)[0]:
                raise DamagedRecord(f"record {number}: its checksum differs")
            yield payload
            at = end + _CRC.size
        number += 1


def _filled(file: BinaryIO, held: bytes, size: int) -> bytes:
    """Returns `held` with what follows it in the file: at least `size` bytes, unless it ends."""
    parts, have = [held], len(held)
    while have < size and (more := file.read(max(_CHUNK_BYTES, size - have))):
        parts.append(more)
        have += len(more)
    return b"".join(parts)


def _pass_over(file: BinaryIO, size: int) -> None:
    try:
        file.seek(size, 1)
    except ValueError:  # an HTTP server that sends no parts of a file
        while size > 0 and (passed := file.read(min(size, _CHUNK_BYTES))):
            size -= len(passed)
