"""Numbers: which texts are some, and their values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from trainer.data.blocks import NULL_INT

Mask = npt.NDArray[np.bool_]

_MOST_DIGITS = 19
_BEYOND_INT64 = 1 << 64
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def mask(array: pa.Array) -> Mask:
    """Returns a boolean arrow array as numpy, null as False."""
    return np.asarray(array.fill_null(False).to_numpy(zero_copy_only=False), bool)


@dataclass(frozen=True)
class Form:
    """What each of k texts looks like; `plain`: no spaces, no thousands marks, decimal point."""

    plain: pa.Array
    blank: Mask
    nan: Mask
    number: Mask
    integer: Mask
    leading_zero: Mask

    @classmethod
    def of(cls, texts: pa.Array, decimal: str = ".", thousands: str | None = None) -> Form:
        """Looks at k texts, numbers written with these marks."""
        plain = pc.ascii_trim_whitespace(texts)
        blank = mask(pc.equal(plain, ""))
        nan = mask(pc.match_substring_regex(plain, "^[+-]?(?i:nan)$"))
        if thousands is not None:
            plain = _without_thousands(plain, decimal, thousands)
        if decimal != ".":
            # A point is no part of such a number: it must not become one.
            plain = pc.replace_substring(pc.replace_substring(plain, ".", "?"), decimal, ".")
        number = mask(pc.match_substring_regex(plain, _NUMBER))
        integer = mask(pc.match_substring_regex(plain, r"^[+-]?\d+$"))
        leading_zero = number & mask(pc.match_substring_regex(plain, r"^[+-]?0\d"))
        return cls(plain, blank, nan, number, integer, leading_zero)

    def float64(self) -> npt.NDArray[np.float64]:
        """float64 [k]; NaN where the text is no number."""
        unsigned = pc.replace_substring_regex(self.plain, r"^\+", "")
        kept = pc.if_else(pa.array(self.number), unsigned, pa.scalar(None, pa.string()))
        return np.asarray(
            kept.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False), np.float64
        )

    def whole(self) -> Mask:
        """Which numbers have no fraction, however written (1.0, 1e3)."""
        values = self.float64()
        return np.isfinite(values) & (values == np.floor(np.where(np.isfinite(values), values, 0)))

    def int64(self) -> tuple[npt.NDArray[np.int64], Mask]:
        """Returns int64 [k], NULL_INT where the text is no number, and which do not fit."""
        values = np.full(len(self.plain), NULL_INT, np.int64)
        outside = np.zeros(len(self.plain), bool)
        chosen = np.flatnonzero(self.number)
        texts = pc.replace_substring_regex(self.plain.filter(pa.array(self.number)), r"^\+", "")
        try:
            values[chosen] = texts.cast(pa.int64()).to_numpy(zero_copy_only=False)
            outside[chosen] = values[chosen] == NULL_INT  # Reserved: the sentinel of null.
        except pa.ArrowInvalid:
            for i, text in zip(chosen, texts.to_pylist(), strict=True):
                value = _whole_number(text)
                outside[i] = not NULL_INT < value < 2**63
                values[i] = NULL_INT if outside[i] else value
        return values, outside


def _whole_number(text: str) -> int:
    """Returns the exact value of a number without fraction; of too many digits, one beyond int64.

    Python refuses to make an int of thousands of digits.
    """
    number = Decimal(text)
    return int(number) if number.adjusted() < _MOST_DIGITS else _BEYOND_INT64


def _without_thousands(texts: pa.Array, decimal: str, thousands: str) -> pa.Array:
    mark = re.escape(thousands)
    grouped = pc.match_substring_regex(
        texts, rf"^[+-]?\d{{1,3}}({mark}\d{{3}})+({re.escape(decimal)}\d*)?$"
    )
    # Marks elsewhere ("1,2,3") are no thousands; "?" keeps them from passing for a number.
    return pc.if_else(
        grouped,
        pc.replace_substring(texts, thousands, ""),
        pc.replace_substring(texts, thousands, "?"),
    )
