"""tf.train.Example without TensorFlow: the same wire format, built from a descriptor.

Sharding, `castell peek` and the input threads read and write records without the 10 s that an
import of TensorFlow costs. A pool of its own keeps it apart from TensorFlow's registration of the
same message names.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def _example_class() -> Any:
    field: Any = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="castell/example.proto", package="tensorflow", syntax="proto3"
    )

    def add(message: Any, name: str, number: int, kind: int, **options: Any) -> None:
        options.setdefault("label", field.LABEL_OPTIONAL)
        message.field.add(name=name, number=number, type=kind, **options)

    for name, kind in (
        ("BytesList", field.TYPE_BYTES),
        ("FloatList", field.TYPE_FLOAT),
        ("Int64List", field.TYPE_INT64),
    ):
        add(file.message_type.add(name=name), "value", 1, kind, label=field.LABEL_REPEATED)

    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, (name, kind) in enumerate(
        (("bytes_list", "BytesList"), ("float_list", "FloatList"), ("int64_list", "Int64List")), 1
    ):
        add(
            feature, name, number, field.TYPE_MESSAGE,
            type_name=f".tensorflow.{kind}", oneof_index=0,
        )  # fmt: skip

    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    add(entry, "key", 1, field.TYPE_STRING)
    add(entry, "value", 2, field.TYPE_MESSAGE, type_name=".tensorflow.Feature")
    add(
        features, "feature", 1, field.TYPE_MESSAGE,
        type_name=".tensorflow.Features.FeatureEntry", label=field.LABEL_REPEATED,
    )  # fmt: skip

    example = file.message_type.add(name="Example")
    add(example, "features", 1, field.TYPE_MESSAGE, type_name=".tensorflow.Features")

    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.Example"))


Example = _example_class()
