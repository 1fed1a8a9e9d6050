"""Many serialized tf.train.Examples at once, a NumPy operation for all of them: the usual form.

Every record is walked in step with the others, one feature a round. The usual form is what all
protobuf libraries write: one `features`, keys before values, packed numbers. Whatever looks
different is `Unusual`, and left to protobuf itself (`rowlayout`), which reads everything, slower.

    Example   0a len ( 0a len [ 0a len key  12 len Feature ] ) …
    Feature   0a len ( 0a len bytes ) …  |  12 len ( 0a len floats )  |  1a len ( 0a len varints )
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.data.manifest import DType

_FIRST, _SECOND = 0x0A, 0x12
_KINDS: dict[DType, int] = {"string": 0x0A, "float32": 0x12, "int64": 0x1A}
_MORE = 0x80  # of a varint's byte: another one follows
_LONGEST_VARINT = 10
# What a gather may read beyond the last record.
_PADDING = b"\0" * 16

Integers = npt.NDArray[np.int64]


class Unusual(Exception):
    """Records that this module does not read."""


@dataclass(frozen=True)
class Wanted:
    """A column. size: values a row; scalar columns have 1."""

    dtype: DType
    size: int = 1


@dataclass(frozen=True)
class Found:
    """Values [n, size] (float32, int64 or bytes objects), of use where `there` [n]."""

    values: npt.NDArray[Any]
    there: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Parsed:
    """The columns that were wanted, and the names of others that some record has."""

    columns: dict[str, Found]
    others: frozenset[str]


def parse(records: Sequence[bytes], wanted: Mapping[str, Wanted]) -> Parsed:
    """Returns the wanted columns of n serialized Examples.

    Raises:
      Unusual: a record has another form, or a column another type or number of values.
    """
    try:
        return _Walk(records, wanted).run()
    except IndexError:  # a length that points beyond the last record
        raise Unusual("lengths do not fit") from None


class _Walk:
    """All records side by side; positions count bytes from the first one's first."""

    def __init__(self, records: Sequence[bytes], wanted: Mapping[str, Wanted]) -> None:
        self._raw = b"".join((*records, _PADDING))
        self._bytes = np.frombuffer(self._raw, np.uint8)
        lengths = np.fromiter(map(len, records), np.int64, len(records))
        self._end = np.cumsum(lengths)
        self._place = self._end - lengths
        self._wanted = {name.encode(): (name, spec) for name, spec in wanted.items()}
        types: dict[DType, Any] = {"float32": np.float32, "int64": np.int64, "string": object}
        self._found = {
            name: Found(
                np.zeros((len(records), spec.size), types[spec.dtype]),
                np.zeros(len(records), np.bool_),
            )
            for name, spec in wanted.items()
        }
        self._others: set[str] = set()

    def run(self) -> Parsed:
        end, self._place = self._field(self._place, _FIRST)
        self._demand(end == self._end)
        left = np.arange(len(end))
        while len(left := left[self._place[left] < self._end[left]]):
            self._entries(left)
        return Parsed(self._found, frozenset(self._others))

    def _entries(self, rows: Integers) -> None:
        """Reads the next feature of `rows`."""
        end, place = self._field(self._place[rows], _FIRST)
        key_end, key = self._field(place, _FIRST)
        value_end, value = self._field(key_end, _SECOND)
        self._demand((value_end == end) & (end <= self._end[rows]))
        self._place[rows] = end
        left = np.arange(len(rows))
        while len(left):  # writers that sort their keys have all rows at the same one
            name = self._raw[key[left[0]] : key_end[left[0]]]
            same = key_end[left] - key[left] == len(name)
            if same.all():
                letters = self._bytes[key[left][:, None] + np.arange(len(name))]
                same = (letters == np.frombuffer(name, np.uint8)).all(axis=1)
            else:
                letters = self._bytes[key[left[same]][:, None] + np.arange(len(name))]
                same[same] = (letters == np.frombuffer(name, np.uint8)).all(axis=1)
            chosen, left = left[same], left[~same]
            if name in self._wanted:
                self._values(*self._wanted[name], rows[chosen], value[chosen], end[chosen])
            else:
                self._others.add(name.decode(errors="replace"))

    def _values(
        self, name: str, spec: Wanted, rows: Integers, place: Integers, end: Integers
    ) -> None:
        """Reads one column's Feature messages, which stand at place … end."""
        found = self._found[name]
        full = place < end
        if not full.all():  # a Feature without a list: as good as absent
            rows, place, end = rows[full], place[full], end[full]
        list_end, place = self._field(place, _KINDS[spec.dtype])
        self._demand(list_end == end)
        full = place < end
        if not full.all():  # an empty list
            rows, place, end = rows[full], place[full], end[full]
        found.there[rows] = True
        if spec.dtype == "string":
            for number in range(spec.size):
                word_end, place = self._field(place, _FIRST)
                pairs = zip(place.tolist(), word_end.tolist(), strict=True)
                words = np.empty(len(rows), object)
                words[:] = [self._raw[a:b] for a, b in pairs]
                found.values[rows, number] = words
                place = word_end
            self._demand(place == end)
            return
        packed_end, place = self._field(place, _FIRST)
        self._demand(packed_end == end)
        if spec.dtype == "float32":
            self._demand(end - place == 4 * spec.size)
            raw = self._bytes[place[:, None] + np.arange(4 * spec.size)]
            found.values[rows] = raw.view("<f4")
            return
        for number in range(spec.size):
            found.values[rows, number], place = self._varint(place)
        self._demand(place == end)

    def _field(self, place: Integers, tag: int) -> tuple[Integers, Integers]:
        """Returns (end, start) of the length-delimited fields at `place`, which must have `tag`."""
        self._demand(self._bytes[place] == tag)
        length, start = self._varint(place + 1)
        self._demand(length >= 0)
        return start + length, start

    def _varint(self, place: Integers) -> tuple[Integers, Integers]:
        """Returns the integers at `place` and the places behind them."""
        byte = self._bytes[place]
        value = (byte & 0x7F).astype(np.uint64)
        place = place + 1
        more = np.flatnonzero(byte >= _MORE)
        for number in range(1, _LONGEST_VARINT):
            if not len(more):
                break
            byte = self._bytes[place[more]]
            value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * number)
            place[more] += 1
            more = more[byte >= _MORE]
        self._demand(len(more) == 0)
        return value.view(np.int64), place

    def _demand(self, holds: Any) -> None:
        if not np.all(holds):
            raise Unusual("another form than protobuf libraries write")
