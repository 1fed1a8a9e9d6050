"""Reading many Examples at once says what protobuf says, or leaves them to protobuf."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.data import wire
from trainer.data.blocks import NULL_INT, plan_storage
from trainer.data.example import Example
from trainer.data.manifest import Feature
from trainer.data.records import DamagedRecord
from trainer.data.rowlayout import Rows

FEATURES = plan_storage(
    (
        Feature(name="f", dtype="float32", nullable=True),
        Feature(name="i", dtype="int64", nullable=True),
        Feature(name="word", dtype="string", nullable=True),
        Feature(name="pair", dtype="float32", shape=(2,), nullable=True),
        Feature(name="ids", dtype="int64", shape=(3,), nullable=True),
    )
)
LISTS = {"float32": "float_list", "int64": "int64_list", "string": "bytes_list"}

ints = st.integers(NULL_INT + 1, 2**63 - 1)
floats = st.floats(width=32, allow_nan=False)
row = st.fixed_dictionaries(
    {},
    optional={
        "f": st.lists(floats, min_size=1, max_size=1),
        "i": st.lists(ints, min_size=1, max_size=1),
        "word": st.lists(st.binary(max_size=200), min_size=1, max_size=1),
        "pair": st.lists(floats, min_size=2, max_size=2),
        "ids": st.lists(ints, min_size=3, max_size=3),
    },
)


def encoded(row: dict[str, Any], extra: bytes = b"") -> bytes:
    example = Example()
    for feature in FEATURES:
        if feature.name in row:
            values = getattr(example.features.feature[feature.name], LISTS[feature.dtype]).value
            values.extend(row[feature.name])
    example.features.feature["other"].int64_list.value.append(1)
    return bytes(example.SerializeToString()) + extra


# A field that tf.train.Example does not have: protobuf passes over it, `wire` reads no such record.
STRANGE = b"\x18\x01"


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(row, min_size=1, max_size=9), strange=st.booleans())
def test_rows_come_back_from_records_of_the_usual_form_and_others(
    rows: list[dict[str, Any]], strange: bool
) -> None:
    payloads = [encoded(r) for r in rows]
    payloads[-1] += STRANGE if strange else b""
    found = Rows(payloads, FEATURES, 0)
    assert (found._parsed is None) == strange
    nulls: dict[str, Any] = {"float32": np.nan, "int64": NULL_INT, "string": b""}
    for feature in FEATURES:
        size = math.prod(n or 0 for n in feature.shape)
        expected = [r.get(feature.name, [nulls[feature.dtype]] * size) for r in rows]
        values = found.column(feature).values
        assert values.shape == (len(rows), *feature.shape)
        np.testing.assert_array_equal(values.reshape(len(rows), size).tolist(), expected)
        there = found.fixed[feature.name].there
        assert there.tolist() == [feature.name in r for r in rows]
    assert found.others == {"other"}


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_bytes_that_are_no_examples_are_damage_and_never_a_crash(data: st.DataObject) -> None:
    payload = bytearray(encoded({"f": [1.0], "i": [300], "word": [b"abc"], "pair": [1.0, 2.0]}))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(payload) - 1))
        payload[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(payload)))
    try:
        Rows([bytes(payload[:cut]), encoded({"i": [1]})], FEATURES, 0).block(0)
    except DamagedRecord:
        return


@pytest.mark.parametrize(
    ("name", "kind", "values", "words"),
    [
        ("f", "int64_list", [1], "record 8: 'f' is a int64_list, not a float_list"),
        ("i", "int64_list", [1, 2], "record 8: 'i' has 2 values, not 1"),
        ("pair", "float_list", [1.0], "record 8: 'pair' has 1 values, not 2"),
    ],
)
def test_another_type_or_number_of_values_is_named(
    name: str, kind: str, values: list[Any], words: str
) -> None:
    example = Example()
    getattr(example.features.feature[name], kind).value.extend(values)
    payloads = [encoded({}), bytes(example.SerializeToString())]
    with pytest.raises(DamagedRecord) as error:
        Rows(payloads, FEATURES, 7).block(0)
    assert str(error.value) == words


def test_empty_lists_and_records_are_nulls() -> None:
    example = Example()
    example.features.feature["f"].float_list.SetInParent()
    example.features.feature["i"].SetInParent()
    parsed = wire.parse([bytes(example.SerializeToString())], {"f": wire.Wanted("float32")})
    assert not parsed.columns["f"].there.any()
    rows = Rows([bytes(example.SerializeToString()), b""], FEATURES, 0)
    assert not any(found.there.any() for found in rows.fixed.values())
