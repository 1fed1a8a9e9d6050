"""How a column is stored: what `decide` settles and `cast` follows."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.data.manifest import DType, Feature

_DTYPES: dict[str, DType] = {"float32": "float32", "string": "string", "bytes": "string"}


@dataclass(frozen=True)
class Plan:
    """One column of the dataset.

    kind: "int64", "float32", "string", "bytes", or what whole numbers mean ("bool", "date", …).
    shape: () scalar, (k,) fixed-size list, (None,) variable-length list.
    words: the dictionary of a text column that is stored as codes, sorted.
    as_text: the source is text; its values are found by reading it.
    """

    name: str
    kind: str
    shape: tuple[int | None, ...] = ()
    words: tuple[str, ...] | None = None
    as_text: bool = False

    @property
    def dtype(self) -> DType:
        """What the manifest calls it."""
        return _DTYPES.get(self.kind, "int64")

    @property
    def logical(self) -> str | None:
        """What the numbers mean, if not themselves."""
        return self.kind if self.kind not in ("int64", "float32", "string") else None

    def feature(self, *, nullable: bool) -> Feature:
        """Returns the manifest's entry."""
        return Feature(
            name=self.name,
            dtype=self.dtype,
            shape=self.shape,
            nullable=nullable,
            logical=self.logical,
            dictionary=self.words,
        )
