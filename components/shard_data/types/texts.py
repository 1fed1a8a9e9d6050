"""A column of a piece as it is written: its distinct texts, and which row has which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from components.shard_data.options import ShardOptions
from components.shard_data.types.numeric import Mask, mask


@dataclass(frozen=True)
class Texts:
    """Codes int32 [n] into `distinct` (a string array), -1 for null."""

    name: str
    distinct: pa.Array
    codes: npt.NDArray[np.int32]

    @classmethod
    def of(cls, name: str, column: pa.Array | pa.ChunkedArray) -> Texts:
        """Returns the distinct texts of a column [n] of text, or of values written as text."""
        if not pa.types.is_dictionary(column.type):
            column = column.cast(pa.string()).dictionary_encode()
        if isinstance(column, pa.ChunkedArray):
            column = column.unify_dictionaries().combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # of no chunk
            column = pa.array([], pa.string()).dictionary_encode()
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return cls(name, column.dictionary, codes.astype(np.int32, copy=False))

    def to_arrow(self) -> pa.DictionaryArray:
        """Returns the column as the spill holds it."""
        indices = pa.array(self.codes, mask=self.codes < 0)
        return pa.DictionaryArray.from_arrays(indices, self.distinct)

    def without(self, null: Mask) -> Texts:
        """Returns the column with some distinct texts made null and out of the list."""
        keep = ~null
        renumber = np.append(np.where(keep, np.cumsum(keep) - 1, -1), -1).astype(np.int32)
        return Texts(self.name, self.distinct.filter(pa.array(keep)), renumber[self.codes])

    def counts(self) -> npt.NDArray[np.int64]:
        """int64 [distinct]: rows of each text."""
        return np.bincount(self.codes + 1, minlength=len(self.distinct) + 1)[1:]

    def first(self, chosen: Mask) -> tuple[str, int]:
        """Returns the first cell among the chosen texts, and its row."""
        # Distinct texts stand in the order in which they first come up.
        code = int(np.argmax(chosen))
        return self.distinct[code].as_py(), int(np.argmax(self.codes == code))

    def spread(self, values: npt.NDArray[Any], null: object) -> npt.NDArray[Any]:
        """Returns the rows [n] of per-text values [distinct]."""
        return np.append(values, np.array([null], values.dtype))[self.codes]


def null_texts(texts: Texts, options: ShardOptions) -> Texts:
    """Makes what `--null-value` names null, spaces around it ignored."""
    named = options.null_everywhere | options.null_by_column.get(texts.name, frozenset())
    if not named or not len(texts.distinct):
        return texts
    values = pa.array(sorted(named), pa.string())
    trimmed = pc.ascii_trim_whitespace(texts.distinct)
    return texts.without(mask(pc.is_in(texts.distinct, values)) | mask(pc.is_in(trimmed, values)))
