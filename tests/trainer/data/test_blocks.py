"""The block layout: what is written comes back, and any protobuf reader agrees on the bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from trainer.data.blocks import (
    NULL_CODE,
    NULL_INT,
    Block,
    Column,
    concat,
    dealt,
    decode_block,
    encode_block,
    pack,
    plan_storage,
)
from trainer.data.manifest import Feature
from trainer.data.records import frame

FEATURES = plan_storage(
    (
        Feature(name="f", dtype="float32", nullable=True),
        Feature(name="i", dtype="int64", nullable=True),
        Feature(name="j", dtype="int64"),
        Feature(name="code", dtype="string", nullable=True, dictionary=("a", "b", "ç")),
        Feature(name="text", dtype="string", nullable=True),
        Feature(name="pair", dtype="float32", shape=(2,)),
        Feature(name="many", dtype="int64", shape=(None,), nullable=True),
        Feature(name="words", dtype="string", shape=(None,)),
    )
)

ints = st.integers(NULL_INT + 1, 2**63 - 1)
floats = st.floats(width=32, allow_nan=False)
row = st.fixed_dictionaries(
    {
        "f": st.one_of(st.just(float("nan")), floats),
        "i": st.one_of(st.just(NULL_INT), ints),
        "j": ints,
        "code": st.integers(NULL_CODE, 2),
        "text": st.binary(max_size=8),
        "pair": st.tuples(floats, floats),
        "many": st.lists(ints, max_size=4),
        "words": st.lists(st.binary(max_size=4), max_size=3),
    }
)


def columns_of(rows: list[dict[str, Any]]) -> dict[str, Column]:
    def objects(values: list[bytes]) -> Any:
        array = np.empty(len(values), object)
        array[:] = values
        return array

    def splits(name: str) -> Any:
        return np.cumsum([0, *(len(r[name]) for r in rows)]).astype(np.int64)

    return {
        "f": Column(np.array([r["f"] for r in rows], np.float32)),
        "i": Column(np.array([r["i"] for r in rows], np.int64)),
        "j": Column(np.array([r["j"] for r in rows], np.int64)),
        "code": Column(np.array([r["code"] for r in rows], np.int32)),
        "text": Column(objects([r["text"] for r in rows])),
        "pair": Column(np.array([r["pair"] for r in rows], np.float32).reshape(-1, 2)),
        "many": Column(
            np.array([v for r in rows for v in r["many"]], np.int64),
            splits("many"),
            np.array([bool(r["many"]) for r in rows]),
        ),
        "words": Column(objects([w for r in rows for w in r["words"]]), splits("words")),
    }


def assert_rows(block: Block, rows: list[dict[str, Any]]) -> None:
    expected = columns_of(rows)
    for feature in FEATURES:
        found, wanted = block.column(feature), expected[feature.name]
        assert_array_equal(found.values, wanted.values)
        if wanted.splits is not None:
            assert found.splits is not None
            assert_array_equal(found.splits, wanted.splits)
        if wanted.valid is not None:
            assert found.valid is not None
            assert_array_equal(found.valid, wanted.valid)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(row, min_size=1, max_size=12), data=st.data())
def test_rows_survive_encoding_and_every_way_of_moving_them(
    rows: list[dict[str, Any]], data: st.DataObject
) -> None:
    ids = np.arange(7, 7 + len(rows))
    block = decode_block(FEATURES, encode_block(FEATURES, pack(FEATURES, columns_of(rows), ids)))
    assert_rows(block, rows)
    assert block.row_id.tolist() == ids.tolist()
    order = data.draw(st.permutations(range(len(rows))))
    assert_rows(block.take(np.array(order)), [rows[i] for i in order])
    cut = data.draw(st.integers(0, len(rows)))
    parts = [block.slice(0, cut), block.slice(cut, len(rows))]
    assert_rows(parts[0], rows[:cut])
    assert_rows(concat(parts), rows)


@settings(max_examples=30, deadline=None)
@given(rows=st.lists(row, min_size=12, max_size=12))
def test_lanes_are_dealt_to_the_steps_in_turns(rows: list[dict[str, Any]]) -> None:
    block = decode_block(
        FEATURES, encode_block(FEATURES, pack(FEATURES, columns_of(rows), np.arange(12)))
    )
    lanes = [block.slice(0, 6), block.slice(6, 12)]
    order = [0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11]
    found = dealt(lanes, steps=3)
    assert_rows(found, [rows[i] for i in order])
    assert found.row_id.tolist() == order


@settings(max_examples=30, deadline=None)
@given(rows=st.lists(row, min_size=1, max_size=5))
def test_protobuf_reads_the_documented_keys(rows: list[dict[str, Any]]) -> None:
    payload = encode_block(FEATURES, pack(FEATURES, columns_of(rows), np.arange(len(rows))))
    read = tf.train.Example.FromString(payload).features.feature
    assert read["rows"].int64_list.value == [len(rows)]
    assert list(read["bytes/text"].bytes_list.value) == [r["text"] for r in rows]
    values = np.frombuffer(read["int64"].bytes_list.value[0], "<i8").reshape(len(rows), 2)
    valid = np.frombuffer(read["int64_valid"].bytes_list.value[0], "u1").reshape(len(rows), 2)
    assert_array_equal(valid[:, 0], [r["i"] != NULL_INT for r in rows])
    assert_array_equal(values[:, 0], [0 if r["i"] == NULL_INT else r["i"] for r in rows])
    assert_array_equal(values[:, 1], [r["j"] for r in rows])


def test_the_same_rows_make_the_same_bytes_and_tensorflow_reads_the_frame(tmp_path: Any) -> None:
    rows: list[dict[str, Any]] = [
        {"f": 1.0, "i": 2, "j": 3, "code": 0, "text": b"x", "pair": (1.0, 2.0)}
        | {"many": [], "words": []}
    ]
    payload = encode_block(FEATURES, pack(FEATURES, columns_of(rows), np.arange(1)))
    assert payload == encode_block(FEATURES, pack(FEATURES, columns_of(rows), np.arange(1)))
    path = tmp_path / "one.tfrecord"
    path.write_bytes(frame(payload) + frame(b""))
    read = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    assert read == [payload, b""]
