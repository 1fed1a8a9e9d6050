"""ISO dates (days since 1970) and timestamps (microseconds since 1970, UTC) from text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from components.shard_data.types.numeric import Mask, mask

_DATE = r"^\s*(?P<date>\d{4}-\d{2}-\d{2})\s*$"
_TIMESTAMP = (
    r"^\s*(?P<date>\d{4}-\d{2}-\d{2})"
    r"(?:[T ](?P<clock>\d{2}:\d{2})(?P<seconds>:\d{2})?(?:\.(?P<fraction>\d{1,9}))?"
    r"(?P<zone>Z|[+-]\d{2}(?::?\d{2})?)?)?\s*$"
)


def kind_of(words: pa.Array) -> str | None:
    """Returns "date" or "timestamp" if every text is one, else None."""
    if not mask(pc.match_substring_regex(words, _TIMESTAMP)).all():
        return None
    kind = "date" if mask(pc.match_substring_regex(words, _DATE)).all() else "timestamp"
    return kind if parse(words, kind)[1].all() else None


def parse(texts: pa.Array, kind: str) -> tuple[npt.NDArray[np.int64], Mask, str | None]:
    """Returns values [k] (days or microseconds), which texts are such, and a remark.

    A timestamp without zone is read as UTC; digits beyond microseconds are cut.
    """
    if kind == "date":
        found = pc.extract_regex(texts, _DATE)
        days, valid = _days(found.field("date"), mask(found.is_valid()))
        return days, valid, None
    found = pc.extract_regex(texts, _TIMESTAMP)
    shaped = mask(found.is_valid())
    parts = {name: found.field(name) for name in ("date", "clock", "seconds", "fraction", "zone")}
    days, valid = _days(parts["date"], shaped)
    clock, in_range = _clock(parts["clock"], parts["seconds"])
    fraction = pc.utf8_rpad(parts["fraction"], 9, "0")
    nanos = _integers(fraction)
    micros = (days * 86_400 + clock - _offset(parts["zone"])) * 1_000_000 + nanos // 1000
    valid &= in_range & (np.abs(_offset(parts["zone"])) < 86_400)
    remarks = []
    if mask(pc.equal(parts["zone"], ""))[valid].any():
        remarks.append("timestamps without zone are read as UTC")
    if (nanos[valid] % 1000).any():
        remarks.append("digits finer than microseconds are cut")
    return micros, valid, "; ".join(remarks) or None


def _days(texts: pa.Array, shaped: Mask) -> tuple[npt.NDArray[np.int64], Mask]:
    """Returns days since 1970 and which texts are dates of the calendar."""
    days = np.zeros(len(texts), np.int64)
    valid = np.zeros(len(texts), bool)
    chosen = np.flatnonzero(shaped)
    try:
        kept = texts.filter(pa.array(shaped)).cast(pa.date32()).cast(pa.int32())
        days[chosen] = kept.to_numpy(zero_copy_only=False)
        return days, shaped
    except pa.ArrowInvalid:
        pass  # Some are no dates of the calendar: find out which.
    for i in chosen:
        try:
            days[i] = np.datetime64(texts[int(i)].as_py(), "D").astype(np.int64)
            valid[i] = True
        except ValueError:
            continue
    return days, valid


def _clock(clock: pa.Array, seconds: pa.Array) -> tuple[npt.NDArray[np.int64], Mask]:
    """Returns seconds of the day and which are a time of day."""
    hour = _integers(pc.utf8_slice_codeunits(clock, 0, 2))
    minute = _integers(pc.utf8_slice_codeunits(clock, 3, 5))
    second = _integers(pc.utf8_slice_codeunits(seconds, 1, 3))
    return hour * 3600 + minute * 60 + second, (hour < 24) & (minute < 60) & (second < 60)


def _offset(zone: pa.Array) -> npt.NDArray[np.int64]:
    """Returns seconds east of UTC."""
    digits = pc.replace_substring_regex(zone, "[^0-9]", "")
    hours = _integers(pc.utf8_slice_codeunits(digits, 0, 2))
    minutes = _integers(pc.utf8_slice_codeunits(digits, 2, 4))
    west = mask(pc.starts_with(zone, "-"))
    return np.where(west, -1, 1) * (hours * 3600 + minutes * 60)


def _integers(texts: pa.Array) -> npt.NDArray[np.int64]:
    """int64 of digits; empty text and null are 0."""
    filled = pc.if_else(pc.equal(texts, ""), "0", texts).fill_null("0")
    return np.asarray(filled.cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64)
