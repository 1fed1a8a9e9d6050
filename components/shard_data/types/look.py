"""What a piece's texts look like: the marks that a type is decided by.

Marks count rows; of a text column these are taken:

    any            not null (empty text that was quoted is not null)
    value          neither blank nor nan
    number         a number, however written; `fraction`: written with point or exponent;
                   `unwhole`: of no whole value; `leading_zero`: such as 007
    word           a value that is no number; `odd_bool`, `odd_date`, `odd_timestamp`: a word that
                   is none of these; `comma`: a number with a decimal comma; `odd_comma`: other
    beyond_int64   a whole number that int64 cannot hold; `beyond_float32`: a number
    unfit          not of the type that `--type` declares
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from components.shard_data.options import ShardOptions
from components.shard_data.types import times
from components.shard_data.types.numeric import Form, Mask, mask
from components.shard_data.types.profile import Mark, Profile
from components.shard_data.types.texts import Texts

FLOAT32_MAX = float(np.finfo(np.float32).max)
_TRUTH = "^(?i:true|false|0|1)$"


@dataclass(frozen=True)
class Place:
    """Which piece is looked at, and the file that it is of."""

    piece: int
    origin: str


def look(texts: Texts, options: ShardOptions, place: Place, most_words: int) -> Profile:
    """Returns the profile of a text column whose nulls are nulls already."""
    declared = options.types.get(texts.name)
    form = Form.of(texts.distinct, options.decimal, options.thousands)
    value = ~(form.blank | form.nan)
    number = form.number
    wide = form.float64()
    unwhole = number & (wide != np.floor(np.where(np.isfinite(wide), wide, 0)))
    chosen = {
        "any": np.ones(len(value), bool),
        "value": value,
        "number": number,
        "fraction": number & ~form.integer,
        "unwhole": unwhole,
        "leading_zero": form.leading_zero,
        "word": value & ~number,
        "beyond_float32": number & (np.abs(wide) > FLOAT32_MAX),
    }
    if declared == "int64" or not chosen["fraction"].any():
        chosen["beyond_int64"] = form.int64()[1]
    words, remark = _words(texts.distinct, chosen["word"], form.integer, number)
    chosen.update(words)
    if declared is not None:
        chosen["unfit"] = _unfit(texts, form, unwhole, declared)
    present = np.abs(wide[number])
    return Profile(
        kind="text",
        origin=place.origin,
        marks=_marks(texts, chosen, place.piece),
        words=tuple(texts.distinct.to_pylist()) if len(texts.distinct) <= most_words else None,
        largest=float(present.max(initial=0.0)),
        notes=(remark,) if remark else (),
    )


def _words(
    distinct: pa.Array, word: Mask, integer: Mask, number: Mask
) -> tuple[dict[str, Mask], str | None]:
    """Looks at the texts that are no numbers; the rest are none of what these may be."""
    if not word.any():
        return {"odd_comma": number & ~integer}, None
    texts = distinct.filter(pa.array(word))
    comma = mask(pc.match_substring_regex(texts, r"^\s*[+-]?\d+,\d+\s*$"))
    is_date = times.parse(texts, "date")[1]
    _, is_timestamp, remark = times.parse(texts, "timestamp")
    found = {
        "odd_bool": ~mask(pc.match_substring_regex(texts, "^(?i:true|false)$")),
        "odd_date": ~is_date,
        "odd_timestamp": ~is_timestamp,
        "comma": comma,
        "odd_comma": ~comma,
    }
    spread = {name: _spread(word, some) for name, some in found.items()}
    spread["odd_comma"] |= number & ~integer
    return spread, remark


def _spread(where: Mask, some: Mask) -> Mask:
    whole = np.zeros(len(where), bool)
    whole[where] = some
    return whole


def _unfit(texts: Texts, form: Form, unwhole: Mask, declared: str) -> Mask:
    null = form.blank | form.nan
    if declared == "int64":
        return ~((form.number & ~unwhole) | null)
    if declared == "float32":
        return ~(form.number | null)
    if declared == "bool":
        trimmed = pc.ascii_trim_whitespace(texts.distinct)
        return ~(mask(pc.match_substring_regex(trimmed, _TRUTH)) | null)
    if declared in ("date", "timestamp"):
        return ~(times.parse(texts.distinct, declared)[1] | null)
    return np.zeros(len(null), bool)


def _marks(texts: Texts, chosen: dict[str, Mask], piece: int) -> dict[str, Mark]:
    counts = texts.counts()
    marks = {}
    for name, some in chosen.items():
        if some.any():
            text, row = texts.first(some)
            marks[name] = Mark(rows=int(counts[some].sum()), text=text, piece=piece, row=row)
    return marks
