"""Encoded bytes against protobuf, TensorFlow and tfx_bsl."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.shard_data.encoding import columns as arrow
from components.shard_data.encoding import examples, records
from components.shard_data.findings import Findings
from components.shard_data.options import ShardOptions
from components.shard_data.types import cast, typed
from components.shard_data.types.decide import decide
from components.shard_data.types.look import Place
from components.shard_data.types.profile import LARGEST_DICTIONARY, Sum
from tests.components.shard_data.made import make_text, rows
from trainer.data.blocks import Column, decode_block, pack, plan_storage
from trainer.data.example import Example
from trainer.data.manifest import Feature
from trainer.data.records import frame, read_records

_INTS = st.integers(-(2**63) + 1, 2**63 - 1)
_FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
_TEXTS = st.text(st.characters(codec="utf-8"), max_size=200)
_OPTIONS = ShardOptions.parse({"sources": ["s"], "output": "o", "label": "y"})


@st.composite
def _tables(draw: st.DrawFn) -> dict[str, list[Any]]:
    count = draw(st.integers(1, 12))

    def cells(strategy: st.SearchStrategy[Any]) -> list[Any]:
        cell = st.none() | strategy
        return draw(st.lists(cell, min_size=count, max_size=count))

    return {
        "i": cells(_INTS),
        "f": cells(_FLOATS.filter(lambda v: v != 0 or str(v) == "0.0")),
        "s": cells(_TEXTS),
        "lists of i": cells(st.lists(_INTS, max_size=4)),
        "lists of s": cells(st.lists(_TEXTS, max_size=4)),
        "é": [0] * count,
    }


_TYPES = {
    "i": pa.int64(), "f": pa.float32(), "s": pa.string(), "lists of i": pa.list_(pa.int64()),
    "lists of s": pa.list_(pa.string()), "é": pa.int64(),
}  # fmt: skip


Table = dict[str, tuple[Feature, Column]]


def _settled(table: dict[str, list[Any]], most_words: int = LARGEST_DICTIONARY) -> Table:
    found = {}
    for name, cells in table.items():
        column = pa.chunked_array([pa.array(cells, _TYPES[name])])
        read = typed.settle(name, column, _OPTIONS, Place(0, "a"), most_words)
        total = Sum(name, most_words)
        total.add(read.profile)
        plan = decide(name, total.total(), _OPTIONS, lambda mark: "a", Findings())
        if plan is not None:
            feature = plan.feature(nullable=None in cells)
            settled = cast.settle(plan, read.array, _OPTIONS).array
            found[name] = (feature, arrow.of_arrow(feature, settled))
    return found


def _expected(table: dict[str, list[Any]], settled: Table, row: int) -> bytes:
    example = Example()
    for name, (described, _) in settled.items():
        cell = table[name][row]
        # Text without dictionary has one word for null and for nothing.
        if cell is None or (cell == "" and described.dictionary is None):
            continue
        feature = example.features.feature[name]
        cell = cell if isinstance(cell, list) else [cell]
        if described.dtype == "string":
            feature.bytes_list.SetInParent()
            feature.bytes_list.value.extend(text.encode() for text in cell)
        elif described.dtype == "float32":
            feature.float_list.SetInParent()
            feature.float_list.value.extend(cell)
        else:
            feature.int64_list.SetInParent()
            # Whole floats beyond 2^24 are stored as integers.
            feature.int64_list.value.extend(map(int, cell))
    return bytes(example.SerializeToString(deterministic=True))


@settings(max_examples=150, deadline=None)
@given(_tables(), st.sampled_from([0, LARGEST_DICTIONARY]))
def test_row_records_are_the_bytes_of_protobuf(table: dict[str, list[Any]], most: int) -> None:
    settled = _settled(table, most)
    count = len(table["é"])
    features = [feature for feature, _ in settled.values()]
    columns = {name: column for name, (_, column) in settled.items()}
    encoded = examples.encode(features, columns, count)
    assert encoded.join().to_pylist() == [_expected(table, settled, row) for row in range(count)]


@settings(max_examples=150, deadline=None)
@given(_tables(), st.integers(1, 12), st.sampled_from([0, LARGEST_DICTIONARY]))
def test_block_records_hold_the_same_values(
    table: dict[str, list[Any]], size: int, most: int
) -> None:
    settled = _settled(table, most)
    count = len(table["é"])
    features = plan_storage([feature for feature, _ in settled.values()])
    columns = {name: column for name, (_, column) in settled.items()}
    packed = pack(features, columns, np.arange(count) + 7)
    written = records.records(features, packed, "blocks", size)
    file = io.BytesIO(b"".join(data for data, _ in written))
    blocks = [decode_block(features, payload) for payload in read_records(file)]
    assert [i for block in blocks for i in block.row_id] == list(range(7, count + 7))
    start = 0
    for block in blocks:
        for feature in features:
            wanted = columns[feature.name].take(np.arange(start, start + block.rows))
            found = block.column(feature)
            np.testing.assert_array_equal(found.values, wanted.values)
            if wanted.splits is not None:
                np.testing.assert_array_equal(found.splits, wanted.splits)
            if found.valid is not None:
                np.testing.assert_array_equal(found.valid, wanted.valid)
        start += block.rows


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**31, 2**63 - 1])
def test_varints_are_those_of_protobuf(value: int) -> None:
    example = Example()
    example.features.feature["a"].int64_list.value.append(value)
    assert example.SerializeToString().endswith(examples.varint(value))


def test_tensorflow_and_tfx_bsl_read_the_rows(tmp_path: Path) -> None:
    import tensorflow as tf
    from tfx_bsl.coders import example_coder

    text = "i,f,s,y\n" + "".join(
        f"{'' if i % 3 == 0 else i},{i / 8},{'' if i % 4 == 0 else f't{i}'},{i % 2}\n"
        for i in range(200)
    )
    make_text(tmp_path, text, layout="rows")
    make_text(tmp_path, text, output=str(tmp_path / "blocks"))
    wanted = rows(tmp_path / "blocks")
    paths = sorted(str(path) for path in (tmp_path / "out/train").iterdir())
    raw = [record.numpy() for record in tf.data.TFRecordDataset(paths)]
    assert len(raw) == 200
    parsed = [tf.train.Example.FromString(record).features.feature for record in raw]
    assert [e["f"].float_list.value[0] for e in parsed] == [i / 8 for i in wanted["stored"]]
    batch = example_coder.ExamplesToRecordBatchDecoder().DecodeBatch(raw)
    for name in ("i", "s"):
        cells = batch.column(batch.schema.get_field_index(name)).to_pylist()
        assert cells == [
            None if i % (3 if name == "i" else 4) == 0 else [i if name == "i" else f"t{i}".encode()]
            for i in wanted["stored"]
        ]
    # Blocks are TFRecord files and Examples too.
    blocks = sorted(str(path) for path in (tmp_path / "blocks/train").iterdir())
    records = [tf.train.Example.FromString(r.numpy()) for r in tf.data.TFRecordDataset(blocks)]
    assert sum(r.features.feature["rows"].int64_list.value[0] for r in records) == 200


def test_framing_is_that_of_tensorflow(tmp_path: Path) -> None:
    import tensorflow as tf

    payloads = [b"", b"a", bytes(range(256)) * 40]
    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as writer:
        for payload in payloads:
            writer.write(payload)
    assert (tmp_path / "theirs").read_bytes() == b"".join(map(frame, payloads))
