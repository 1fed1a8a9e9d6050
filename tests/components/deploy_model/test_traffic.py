"""Shares of traffic are whole percents that make 100, in the proportions that were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.deploy_model.traffic import ALL, with_share


@pytest.mark.parametrize(
    ("shares", "percent", "found"),
    [
        ({}, 10, {"new": 100}),
        ({"a": 100}, 10, {"new": 10, "a": 90}),
        ({"a": 60, "b": 40}, 50, {"new": 50, "a": 30, "b": 20}),
        ({"a": 50, "new": 50}, 100, {"new": 100, "a": 0}),
        ({"a": 50, "new": 50}, 0, {"new": 0, "a": 100}),
        ({"a": 0, "b": 0, "new": 100}, 0, {"new": 0, "a": 0, "b": 100}),
    ],
)
def test_the_others_keep_their_proportions(
    shares: dict[str, int], percent: int, found: dict[str, int]
) -> None:
    assert with_share(shares, "new", percent, heir="b" if "b" in shares else "") == found


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=2), st.integers(0, 100), min_size=1),
    st.integers(0, 100),
)
def test_shares_always_make_a_hundred(shares: dict[str, int], percent: int) -> None:
    found = with_share(shares, "new", percent)
    assert sum(found.values()) == ALL
    assert min(found.values()) >= 0
    assert found["new"] == percent
    assert set(found) == {*shares, "new"}
