"""Types of text columns, decided over the whole input.

Everything works on a column's distinct texts and how often each occurs: a type depends neither on
the order of rows nor on where a block ends, and a rare word counts wherever it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from components.shard_data import numeric, times
from components.shard_data.findings import Findings, flag
from components.shard_data.numeric import Mask
from components.shard_data.options import ShardOptions
from components.shard_data.series import Series, from_texts
from trainer.data.blocks import NULL_INT
from trainer.errors import UsageError

# Longer cells are cut in errors, which are one line.
_LONGEST_SHOWN = 60
_FLOAT32_MAX = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Texts:
    """A column as written: codes [n] into `distinct` (a string array), -1 for null.

    `where(row)` says file and line of a row.
    """

    name: str
    distinct: pa.Array
    codes: npt.NDArray[np.int32]
    where: Callable[[int], str]

    @classmethod
    def of(cls, name: str, column: pa.ChunkedArray, where: Callable[[int], str]) -> Texts:
        """Returns the distinct texts of a string column [n]."""
        encoded = column.cast(pa.string()).dictionary_encode().combine_chunks()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.chunk(0)
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return cls(name, encoded.dictionary, codes.astype(np.int32), where)

    def without(self, null: Mask) -> Texts:
        """Returns the column with some distinct texts made null and out of the list."""
        keep = ~null
        renumber = np.append(np.where(keep, np.cumsum(keep) - 1, -1), -1).astype(np.int32)
        return Texts(self.name, self.distinct.filter(pa.array(keep)), renumber[self.codes],
                     self.where)  # fmt: skip

    def counts(self) -> npt.NDArray[np.int64]:
        """int64 [distinct]: rows of each text."""
        return np.bincount(self.codes + 1, minlength=len(self.distinct) + 1)[1:]

    def first(self, chosen: Mask) -> tuple[str, str]:
        """Returns the first cell among the chosen texts, and its place."""
        row = int(np.argmax(np.append(chosen, False)[self.codes]))
        return self.distinct[int(self.codes[row])].as_py(), self.where(row)

    def spread(self, values: npt.NDArray[np.generic], null: object) -> npt.NDArray[np.generic]:
        """Returns the rows [n] of per-text values [distinct]."""
        return np.append(values, np.array([null], values.dtype))[self.codes]


def null_texts(texts: Texts, options: ShardOptions) -> Texts:
    """Makes what `--null-value` names null, spaces around it ignored."""
    named = options.null_everywhere | options.null_by_column.get(texts.name, frozenset())
    if not named or not len(texts.distinct):
        return texts
    values = pa.array(sorted(named), pa.string())
    trimmed = pc.ascii_trim_whitespace(texts.distinct)
    return texts.without(
        numeric.mask(pc.is_in(texts.distinct, values)) | numeric.mask(pc.is_in(trimmed, values))
    )


def decide(texts: Texts, options: ShardOptions, say: Findings) -> Series | None:
    """Returns the typed column, or None (and says so) if it holds no value.

    Raises:
      UsageError: numbers and other words mixed, numbers that are out of range, or texts that are
        not of the type that `--type` declares.
    """
    texts = null_texts(texts, options)
    kind: str | None = options.types.get(texts.name)
    form = numeric.Form.of(texts.distinct, options.decimal, options.thousands)
    has_value = ~(form.blank | form.nan)
    if not (len(has_value) if kind == "string" else has_value.any()):
        say.drop_column(texts.name, "it has no value in any row")
        return None
    if kind is None:
        kind = _infer(texts, form, options, say)
    return _KINDS[kind](texts, form, say)


def _infer(texts: Texts, form: numeric.Form, options: ShardOptions, say: Findings) -> str:
    """Returns the type that the column's own texts say."""
    name = texts.name
    value = ~(form.blank | form.nan)
    all_whole = bool((form.integer | ~form.number).all())
    if form.leading_zero.any() and _half_are_numbers(texts, form, value):
        number = "int64" if all_whole else "float32"
        say.note(
            f"column {name} is text: {texts.first(form.leading_zero)[0]!r} begins with a zero "
            f"({flag('--type', f'{name}={number}')} makes numbers of it)"
        )
        return "string"
    if (form.number | ~value).all():
        return "int64" if (form.integer | ~value).all() else "float32"
    words = texts.distinct.filter(pa.array(value))
    if numeric.mask(pc.match_substring_regex(words, "^(?i:true|false)$")).all():
        return "bool"
    temporal = times.kind_of(words)
    if temporal:
        return temporal
    _refuse_decimal_commas(texts, value, options)
    _refuse_mixture(texts, form, value)
    return "string"


def _refuse_decimal_commas(texts: Texts, value: Mask, options: ShardOptions) -> None:
    if options.decimal == "," or options.thousands == ",":
        return
    words = texts.distinct.filter(pa.array(value))
    comma = numeric.mask(pc.match_substring_regex(words, r"^\s*[+-]?\d+,\d+\s*$"))
    whole = numeric.mask(pc.match_substring_regex(words, r"^\s*[+-]?\d+\s*$"))
    if (comma | whole).all() and comma.sum() >= whole.sum():
        cell = words[int(np.argmax(comma))].as_py()
        raise UsageError(
            f"column {texts.name} holds numbers with commas ({cell!r}): say what the comma means, "
            f"--decimal ',' or --thousands ',', or keep it as text with {_as_text(texts)}"
        )


def _half_are_numbers(texts: Texts, form: numeric.Form, value: Mask) -> bool:
    counts = texts.counts()
    return bool(2 * counts[form.number].sum() >= counts[value].sum())


def _refuse_mixture(texts: Texts, form: numeric.Form, value: Mask) -> None:
    if not _half_are_numbers(texts, form, value):
        return
    counts = texts.counts()
    are_numbers, others = counts[form.number].sum(), counts[value & ~form.number].sum()
    cell, place = texts.first(value & ~form.number)
    raise UsageError(
        f"column {texts.name} holds {are_numbers:,} numbers and {others:,} other values, first "
        f"{_shown(cell)} ({place}): if that means missing, "
        f"{_null_flag(f'={cell}' if '=' in cell else cell)}; to keep all of it as text, "
        f"{_as_text(texts)}"
    )


def _as_text(texts: Texts) -> str:
    return flag("--type", f"{texts.name}=string")


def _null_flag(value: str) -> str:
    """A `--null-value` to paste into a shell; V stands for what does not fit into a line."""
    if len(value) > _LONGEST_SHOWN or not value.isprintable():
        value = "V"
    return flag("--null-value", value)


def _shown(cell: str) -> str:
    return repr(_shortened(cell))


def _shortened(cell: str) -> str:
    return cell if len(cell) <= _LONGEST_SHOWN else cell[:_LONGEST_SHOWN] + "…"


def as_text(texts: Texts) -> Series:
    """Returns the texts as they are written."""
    return from_texts(texts.name, texts.codes, texts.distinct.to_pylist())


def _require(texts: Texts, allowed: Mask, kind: str) -> None:
    if allowed.all():
        return
    cell, place = texts.first(~allowed)
    raise UsageError(
        f"column {texts.name}: {_shown(cell)} ({place}) is no {kind}: if it means missing, "
        f"{_null_flag(f'{texts.name}={cell}')}; to keep all of it as text, "
        f"{_as_text(texts)}"
    )


def _text(texts: Texts, form: numeric.Form, say: Findings) -> Series:
    return as_text(texts)


def _int64(texts: Texts, form: numeric.Form, say: Findings) -> Series:
    null = form.blank | form.nan
    whole = form.integer | (form.number & form.whole())
    _require(texts, whole | null, "int64")
    values, outside = form.int64()
    if outside.any():
        cell, place = texts.first(outside)
        raise UsageError(
            f"column {texts.name}: {_shortened(cell)} ({place}) is beyond int64: {_as_text(texts)} "
            f"keeps the digits, {flag('--type', f'{texts.name}=float32')} rounds"
        )
    return numeric.int_series(texts.name, texts.spread(values, NULL_INT))


def _float32(texts: Texts, form: numeric.Form, say: Findings) -> Series:
    _require(texts, form.number | form.blank | form.nan, "number")
    values = form.float64()
    beyond = np.abs(values) > _FLOAT32_MAX
    if beyond.any():
        cell, place = texts.first(beyond)
        raise UsageError(
            f"column {texts.name}: {_shortened(cell)} ({place}) is beyond float32: if it means "
            f"missing, {_null_flag(f'{texts.name}={cell}')}; to keep all of it as text, "
            f"{_as_text(texts)}"
        )
    return numeric.float_series(texts.name, texts.spread(values, np.nan), say)


def _bool(texts: Texts, form: numeric.Form, say: Findings) -> Series:
    trimmed = pc.ascii_trim_whitespace(texts.distinct)
    true = numeric.mask(pc.match_substring_regex(trimmed, "^(?i:true|1)$"))
    false = numeric.mask(pc.match_substring_regex(trimmed, "^(?i:false|0)$"))
    null = form.blank | form.nan
    _require(texts, true | false | null, "true or false")
    values = np.where(null, NULL_INT, true.astype(np.int64))
    return numeric.int_series(texts.name, texts.spread(values, NULL_INT), "bool")


def _temporal(kind: str) -> Callable[[Texts, numeric.Form, Findings], Series]:
    def cast(texts: Texts, form: numeric.Form, say: Findings) -> Series:
        null = form.blank | form.nan
        values, valid, remark = times.parse(texts.distinct, kind)
        _require(texts, valid | null, f"ISO {kind}")
        if remark:
            say.note(f"column {texts.name}: {remark}")
        values = np.where(null, NULL_INT, values)
        return numeric.int_series(texts.name, texts.spread(values, NULL_INT), kind)

    return cast


_KINDS: dict[str, Callable[[Texts, numeric.Form, Findings], Series]] = {
    "string": _text,
    "int64": _int64,
    "float32": _float32,
    "bool": _bool,
    "date": _temporal("date"),
    "timestamp": _temporal("timestamp"),
}
