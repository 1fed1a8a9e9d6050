"""The columns that a `schema.pbtxt` describes: tensorflow_metadata's Schema, as far as it matters.

Read with a descriptor made here, for the same reasons as `example`; fields that are not named below
(domains, drift thresholds, environments) are passed over.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from trainer.data.manifest import DType, Feature
from trainer.errors import UsageError

_TYPES: dict[int, DType] = {1: "string", 2: "int64", 3: "float32"}
_TYPE_NAMES = ("TYPE_UNKNOWN", "BYTES", "INT", "FLOAT", "STRUCT")
# Of a row: an image of 600 x 582 in colour. A wrong schema must not ask for all of the memory.
_MOST_VALUES = 1 << 20
_PACKAGE = "tensorflow.metadata.v0"
# message -> its fields as (name, number, type), where a capital letter begins a message's name.
_MESSAGES: dict[str, tuple[tuple[str, int, str], ...]] = {
    "Schema": (("feature", 1, "*Feature"),),
    "Feature": (
        ("name", 1, "string"),
        ("value_count", 5, "ValueCount"),
        ("type", 6, "FeatureType"),
        ("presence", 14, "FeaturePresence"),
        ("shape", 23, "FixedShape"),
    ),
    "ValueCount": (("min", 1, "int64"), ("max", 2, "int64")),
    "FeaturePresence": (("min_fraction", 1, "double"), ("min_count", 2, "int64")),
    "FixedShape": (("dim", 2, "*Dim"),),
    "Dim": (("size", 1, "int64"), ("name", 2, "string")),
}


def parse(text: str, name: str) -> tuple[Feature, ...]:
    """Returns the columns of a schema in its order; `name` is what an error calls it.

    A scalar is a feature of one value a row. A feature is nullable unless it is present in all
    rows by the schema.

    Raises:
      UsageError: the text is no Schema, or describes a feature that is not to be had as a column.
    """
    schema = _schema_class()()
    try:
        text_format.Parse(text, schema, allow_unknown_field=True)
    except text_format.ParseError as error:
        raise UsageError(f"{name} is no tensorflow_metadata Schema: {error}") from None
    if not schema.feature:
        raise UsageError(f"{name} describes no feature")
    seen: set[str] = set()
    for feature in schema.feature:
        if feature.name in seen:
            raise UsageError(f"{name}: feature {feature.name!r} is described twice: remove one")
        seen.add(feature.name)
    return tuple(_column(feature, name) for feature in schema.feature)


def _column(feature: Any, name: str) -> Feature:
    if feature.type not in _TYPES:
        raise UsageError(
            f"{name}: feature {feature.name!r} is {_TYPE_NAMES[feature.type]}: columns are BYTES, "
            "INT or FLOAT; remove it from the schema to leave it out"
        )
    shape = _shape(feature)
    sizes = [size for size in shape if size is not None]
    if min(sizes, default=1) < 1 or prod(sizes) > _MOST_VALUES:
        raise UsageError(
            f"{name}: feature {feature.name!r} has lists of {' x '.join(map(str, sizes))} values: "
            f"a row has 1 to {_MOST_VALUES:,}; mend the shape"
        )
    return Feature(
        name=feature.name,
        dtype=_TYPES[feature.type],
        shape=shape,
        nullable=feature.presence.min_fraction < 1,
    )


def _shape(feature: Any) -> tuple[int | None, ...]:
    if feature.HasField("value_count"):
        least, most = feature.value_count.min, feature.value_count.max
        shape: tuple[int | None, ...] = (int(most),) if least == most > 0 else (None,)
    else:
        shape = tuple(int(dim.size) for dim in feature.shape.dim)
    # TensorFlow Data Validation writes a shape of [1] for what has one value in every row.
    return () if shape == (1,) else shape


@cache
def _schema_class() -> Any:
    kinds: Any = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="castell/schema.proto", package=_PACKAGE, syntax="proto3"
    )
    numbers = file.enum_type.add(name="FeatureType")
    for number, name in enumerate(_TYPE_NAMES):
        numbers.value.add(name=name, number=number)
    for message, fields in _MESSAGES.items():
        made = file.message_type.add(name=message)
        for name, number, kind in fields:
            target = kind.removeprefix("*")
            field = made.field.add(name=name, number=number)
            field.label = kinds.LABEL_REPEATED if kind != target else kinds.LABEL_OPTIONAL
            if target[0].islower():
                field.type = getattr(kinds, f"TYPE_{target.upper()}")
            else:
                field.type = kinds.TYPE_MESSAGE if target in _MESSAGES else kinds.TYPE_ENUM
                field.type_name = f".{_PACKAGE}.{target}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.Schema"))
