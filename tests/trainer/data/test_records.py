"""TFRecord framing: whole files are read, every cut and every flipped bit is noticed."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.records import DamagedRecord, frame, read_records

PAYLOADS = [b"first", b"", b"a longer third record"]


def test_records_come_back_and_can_be_skipped() -> None:
    data = b"".join(map(frame, PAYLOADS))
    assert list(read_records(io.BytesIO(data))) == PAYLOADS
    assert list(read_records(io.BytesIO(data), skip=2)) == PAYLOADS[2:]


@given(st.data())
def test_any_flipped_bit_is_damage(data: st.DataObject) -> None:
    whole = bytearray(b"".join(map(frame, PAYLOADS)))
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(DamagedRecord):
        list(read_records(io.BytesIO(bytes(whole))))


@given(st.integers(1, 60))
def test_a_cut_inside_a_record_is_damage(cut: int) -> None:
    whole = b"".join(map(frame, PAYLOADS))
    ends = {0, len(frame(PAYLOADS[0])), len(frame(PAYLOADS[0]) + frame(PAYLOADS[1]))}
    if cut in ends:
        return
    with pytest.raises(DamagedRecord, match="cut off"):
        list(read_records(io.BytesIO(whole[:cut])))
