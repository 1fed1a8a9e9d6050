"""TFRecord framing: length, masked crc32c of the length, payload, masked crc32c of the payload.

Our own reader, because TensorFlow's takes a file cut at a record boundary for a complete one and
needs TensorFlow; here every cut and every flipped bit is a `DamagedRecord`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

import google_crc32c

_HEADER = struct.Struct("<QI")
_CRC = struct.Struct("<I")
_MASK_DELTA = 0xA282EAD8
# A length beyond this is damage, not data: protobuf itself ends at 2 GiB.
_LARGEST_RECORD = 1 << 31


class DamagedRecord(Exception):
    """The file ends inside a record or a checksum differs; the text says which and where."""


def masked_crc(data: bytes) -> int:
    """The masked crc32c that TFRecord stores."""
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def frame(payload: bytes) -> bytes:
    """One record as it stands in the file."""
    length = struct.pack("<Q", len(payload))
    return b"".join(
        (length, _CRC.pack(masked_crc(length)), payload, _CRC.pack(masked_crc(payload)))
    )


def read_records(file: BinaryIO, skip: int = 0) -> Iterator[bytes]:
    """Yields payloads, checked, after seeking past the first `skip` records.

    Raises:
      DamagedRecord: on a truncated record or a checksum that differs.
    """
    number = 0
    while header := file.read(_HEADER.size):
        if len(header) < _HEADER.size:
            raise DamagedRecord(f"record {number} is cut off in its header")
        length, crc = _HEADER.unpack(header)
        if masked_crc(header[:8]) != crc or length > _LARGEST_RECORD:
            raise DamagedRecord(f"record {number}: the checksum of its length differs")
        if number < skip:
            _pass_over(file, length + _CRC.size)
        else:
            payload = file.read(length)
            tail = file.read(_CRC.size)
            if len(payload) < length or len(tail) < _CRC.size:
                raise DamagedRecord(f"record {number} is cut off")
            if masked_crc(payload) != _CRC.unpack(tail)[0]:
                raise DamagedRecord(f"record {number}: its checksum differs")
            yield payload
        number += 1


def _pass_over(file: BinaryIO, size: int) -> None:
    try:
        file.seek(size, 1)
    except ValueError:  # an HTTP server that sends no parts of a file
        file.read(size)
