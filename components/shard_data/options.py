"""What `castell shard` is told: every option, its default and its check.

Values may be given as the text of a flag (`split="train=0.8,eval=0.2"`) or as Python values.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from trainer.data.compressed import Compression
from trainer.data.manifest import LabelKind, Layout
from trainer.errors import UsageError

ColumnType = Literal["string", "int64", "float32", "bool", "date", "timestamp"]
COLUMN_TYPES: tuple[ColumnType, ...] = (
    "string", "int64", "float32", "bool", "date", "timestamp",
)  # fmt: skip
_ALIASES = {"text": "string", "str": "string", "int": "int64", "float": "float32"}

# Of input as it is stored: read in a second, and small beside the memory of a worker.
DEFAULT_SHARD_BYTES = 128 << 20
# Below it, the interpreter and its libraries leave no room for rows.
LEAST_MEMORY = 256 << 20
# A directory of the dataset.
SPLIT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
DEFAULT_SPLIT = {"train": 0.8, "eval": 0.1, "test": 0.1}
_SIZES = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}
# What changes neither a byte of the data nor its description.
INCIDENTAL = {
    "sources", "output", "append", "labels", "engine", "beam_options", "processes", "memory",
    "verify", "schema_file",
}  # fmt: skip


class ShardOptions(BaseModel):
    """One call of `castell shard`; make it with `parse` to have mistakes as `UsageError`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sources: tuple[str, ...] = Field(min_length=1)
    output: str = Field(min_length=1)
    label: str = ""
    append: bool = False
    split: dict[str, float] = DEFAULT_SPLIT
    split_by: tuple[str, ...] = ()
    split_time: str | None = None
    split_column: str | None = None
    shards: int | None = Field(None, gt=0)
    shard_size: int = Field(DEFAULT_SHARD_BYTES, gt=0)
    layout: Layout = "blocks"
    block_rows: int = Field(1024, gt=0)
    compression: Compression | None = None
    seed: int = Field(0, ge=0, lt=2**63)
    null_values: tuple[str, ...] = ()
    types: dict[str, ColumnType] = {}
    drop: tuple[str, ...] = ()
    label_kind: LabelKind | None = None
    drop_missing_label: bool = False
    schema_file: str | None = None
    delimiter: str | None = None
    decimal: str = "."
    thousands: str | None = None
    comment: str | None = None
    encoding: str = "utf-8"
    skip_rows: int = Field(0, ge=0)
    missing_columns: Literal["error", "null"] = "error"
    max_bad_rows: int = Field(0, ge=0)
    labels: str | None = Field(None, min_length=1)
    order: Literal["listed", "content"] = "listed"
    engine: Literal["local", "beam"] = "local"
    beam_options: dict[str, str] = {}
    processes: int | None = Field(None, gt=0)
    memory: int = 4 << 30
    verify: bool = False

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> ShardOptions:
        """Returns the options; UsageError names the flag, the value and what is allowed."""
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            message = first["msg"].removeprefix("Value error, ")
            if not first["loc"]:  # about two options together: the message names them
                raise UsageError(message) from None
            flag = _flag(str(first["loc"][0]))
            raise UsageError(f"{flag} ({first['input']}): {message}") from None

    @property
    def split_is_default(self) -> bool:
        """Whether nobody asked for these splits: then an empty eval or test may be left out."""
        return "split" not in self.model_fields_set

    @property
    def null_everywhere(self) -> frozenset[str]:
        """The texts that are null in every column."""
        return frozenset(
            value.removeprefix("=") for value in self.null_values if value.find("=") < 1
        )

    @property
    def null_by_column(self) -> dict[str, frozenset[str]]:
        """The texts that are null in one column (`--null-value COL=V`)."""
        found: dict[str, set[str]] = {}
        for value in self.null_values:
            column, equals, text = value.partition("=")
            if equals and column:
                found.setdefault(column, set()).add(text)
        return {column: frozenset(texts) for column, texts in found.items()}

    @property
    def split_columns(self) -> tuple[str, ...]:
        """The columns that splits depend on."""
        one = [name for name in (self.split_time, self.split_column) if name is not None]
        return (*self.split_by, *one)

    def identity(self) -> dict[str, Any]:
        """The options that the dataset depends on, as JSON values."""
        return self.model_dump(mode="json", exclude=INCIDENTAL)

    @field_validator("beam_options", mode="before")
    @classmethod
    def _beam_options(cls, value: Any) -> Any:
        return value if isinstance(value, Mapping) else _pairs(value)

    @field_validator("split", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        return _pairs([part.strip() for part in value.split(",")])

    @field_validator("split")
    @classmethod
    def _fractions(cls, value: dict[str, float]) -> dict[str, float]:
        for name, fraction in value.items():
            if not SPLIT_NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not a name of letters, digits, - and _")
            if not 0 < fraction <= 1:
                raise ValueError(f"{name}={fraction:g} is not a fraction above 0 and up to 1")
        if "train" not in value:
            raise ValueError("there must be a split called train")
        if abs(sum(value.values()) - 1) > 1e-6:
            raise ValueError(f"the fractions must add up to 1, not {sum(value.values()):g}")
        return value

    @field_validator("types", mode="before")
    @classmethod
    def _types(cls, value: Any) -> Any:
        pairs = value if isinstance(value, Mapping) else _pairs(value)
        types = {column: _ALIASES.get(str(kind), kind) for column, kind in pairs.items()}
        for column, kind in types.items():
            if kind not in COLUMN_TYPES:
                raise ValueError(f"{column}={kind}: a type is one of {', '.join(COLUMN_TYPES)}")
        return types

    @field_validator("split_by", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        if value is None or value == "":
            return ()
        return (value,) if isinstance(value, str) else value

    @field_validator("memory", "shard_size", mode="before")
    @classmethod
    def _size(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        match = re.fullmatch(r"(\d+)\s*([A-Z]*)", value.strip().upper())
        if not match or match[2] not in _SIZES:
            raise ValueError("a size is a number and B, KiB, MiB or GiB, as in 4GiB")
        return int(match[1]) * _SIZES[match[2]]

    @field_validator("memory")
    @classmethod
    def _enough(cls, value: int) -> int:
        if value < LEAST_MEMORY:
            raise ValueError(f"at least {LEAST_MEMORY >> 20}MiB are needed")
        return value

    @field_validator("delimiter", "decimal", "thousands", "comment")
    @classmethod
    def _one_character(cls, value: str | None) -> str | None:
        value = "\t" if value == "\\t" else value
        if value is not None and (len(value) != 1 or not value.isascii() or value in '"\r\n'):
            raise ValueError("must be one ASCII character (a tab is \\t)")
        return value

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, value: str) -> str:
        try:
            "a".encode(value)  # "hex" is a codec, but not of text
            return codecs.lookup(value).name
        except (LookupError, UnicodeError):
            raise ValueError("not an encoding that is known (utf-8, latin-1, utf-16…)") from None

    @model_validator(mode="after")
    def _consistent(self) -> ShardOptions:
        if not self.label and not self.append:
            raise ValueError("--label COL is required: the column to predict")
        if self.decimal == self.thousands:
            raise ValueError(f"--thousands and --decimal cannot both be {self.decimal!r}")
        rules = {"--split-by": bool(self.split_by), "--split-time": self.split_time is not None,
                 "--split-column": self.split_column is not None}  # fmt: skip
        asked = [flag for flag, is_set in rules.items() if is_set]
        if len(asked) > 1:
            raise ValueError(f"{' and '.join(asked)}: say one of them")
        if self.split_column is not None and not self.split_is_default:
            raise ValueError("--split and --split-column: the column says the splits")
        if self.beam_options and self.engine != "beam":
            raise ValueError("--beam-option is for --engine beam")
        if self.label in self.split_columns:
            raise ValueError(f"the label {self.label} cannot decide the split")
        if self.label in self.drop:
            raise ValueError(f"--drop {self.label}: the label cannot be left out")
        return self


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    """Reads NAME=VALUE texts; a name twice, or one without a value, is an error."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals or not name or not value:
            raise ValueError(f"{text!r} is not NAME=VALUE")
        if name in pairs:
            raise ValueError(f"{name} is given twice")
        pairs[name] = value
    return pairs


def _flag(field: str) -> str:
    names = {"sources": "SOURCE", "null_values": "--null-value", "types": "--type",
             "schema_file": "--schema", "beam_options": "--beam-option"}  # fmt: skip
    return names.get(field, "--" + field.replace("_", "-"))
