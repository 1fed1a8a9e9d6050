"""`schema.pbtxt`: the columns as a tensorflow_metadata Schema, written, and read for `--schema`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from components.shard_data.options import ShardOptions
from trainer import files
from trainer.data.manifest import Feature, Label
from trainer.errors import UsageError


def to_text(features: Sequence[Feature], label: Label) -> str:
    """Returns the schema in protobuf's text form."""
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2

    schema = schema_pb2.Schema()
    for feature in features:
        _describe(schema.feature.add(), feature, label)
    return str(text_format.MessageToString(schema, as_utf8=True))


def _describe(entry: Any, feature: Feature, label: Label) -> None:
    from tensorflow_metadata.proto.v0 import schema_pb2

    entry.name = feature.name
    kinds = {"float32": schema_pb2.FLOAT, "int64": schema_pb2.INT, "string": schema_pb2.BYTES}
    entry.type = kinds[feature.dtype]
    entry.presence.min_fraction = 0.0 if feature.nullable else 1.0
    if None in feature.shape:
        entry.value_count.min = 0
    else:
        entry.shape.SetInParent()
        for size in feature.shape:
            entry.shape.dim.add(size=size)
    if feature.dictionary is not None:
        entry.string_domain.value.extend(feature.dictionary)
    if feature.logical == "bool":
        entry.bool_domain.SetInParent()
    elif feature.logical == "date":
        entry.time_domain.integer_format = schema_pb2.TimeDomain.UNIX_DAYS
    elif feature.logical == "timestamp":
        entry.time_domain.integer_format = schema_pb2.TimeDomain.UNIX_MICROSECONDS
    elif feature.name == label.name and feature.dtype == "int64" and label.classes:
        entry.int_domain.min = int(label.classes[0])
        entry.int_domain.max = int(label.classes[-1])
        entry.int_domain.is_categorical = True


def with_types(options: ShardOptions) -> ShardOptions:
    """Returns the options with the types of `--schema` under those of `--type`."""
    if options.schema_file is None:
        return options
    types = {**_read(options.schema_file), **options.types}
    return options.model_copy(update={"types": types})


def _read(path: str) -> dict[str, str]:
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2

    try:
        schema = text_format.Parse(files.read_text(path), schema_pb2.Schema())
    except FileNotFoundError:
        raise UsageError(f"--schema {path}: no such file") from None
    except OSError as error:
        raise UsageError(f"--schema {path}: {error.strerror or error}") from None
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise UsageError(f"--schema {path} is no tensorflow_metadata Schema: {error}") from None
    kinds = {schema_pb2.FLOAT: "float32", schema_pb2.INT: "int64", schema_pb2.BYTES: "string"}
    types = {}
    for feature in schema.feature:
        if feature.HasField("bool_domain"):
            types[feature.name] = "bool"
        elif feature.HasField("time_domain"):
            days = feature.time_domain.integer_format == schema_pb2.TimeDomain.UNIX_DAYS
            types[feature.name] = "date" if days else "timestamp"
        elif feature.type in kinds and not feature.HasField("value_count"):
            types[feature.name] = kinds[feature.type]
    return types
