"""Figures of shards merge into what one look at all rows gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from components.shard_data.figures import collect, merge, state
from trainer.data.blocks import NULL_CODE, NULL_INT, Column
from trainer.data.manifest import DType, Feature
from trainer.data.statistics import FeatureStatistics

NUMBERS: dict[str, Any] = {
    "ties": np.array([3, 1, 2, 2, 2, 2, 2, 5], np.float32),
    "one": np.full(7, 4.5, np.float32),
    "huge": np.array([2**62, 2**62 + 1024, -(2**62)], np.int64),
    "near": np.array([2**53, 2**53, 2**53], np.int64),
    "normal": np.random.default_rng(0).normal(10, 3, 5000).astype(np.float32),
    "heavy": np.random.default_rng(1).lognormal(0, 2, 3001).astype(np.float32),
    "months": np.random.default_rng(2).integers(1, 13, 4000),
    "wide": np.random.default_rng(3).integers(-(10**9), 10**9, 4000),
}


def feature(dtype: DType, shape: tuple[int | None, ...] = (), **more: Any) -> Feature:
    return Feature(name="c", dtype=dtype, shape=shape, **more)


def cut(column: Column, shards: int) -> list[Column]:
    rows = len(column.values if column.splits is None else column.splits[1:])
    return [column.take(part) for part in np.array_split(np.arange(rows), shards)]


def figures_of(
    described: Feature, column: Column, shards: int, limits: tuple[float, float] | None = None
) -> FeatureStatistics:
    parts = cut(column, shards)
    sizes = [len(p.values if p.splits is None else p.splits[1:]) for p in parts]
    ranges = {} if limits is None else {"c": limits}
    states = [
        collect([described], {"c": p}, rows, ranges, split_rows=sum(sizes))
        for p, rows in zip(parts, sizes, strict=True)
    ]
    merged = merge([described], states)
    assert merged.rows == sum(sizes)
    return merged.features["c"]


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_what_numpy_says_of_all_rows(name: str, shards: int) -> None:
    values = NUMBERS[name]
    wide = values.astype(np.float64)
    dtype: DType = "float32" if values.dtype == np.float32 else "int64"
    found = figures_of(feature(dtype), Column(values), shards, (wide.min(), wide.max()))
    assert (found.count, found.missing) == (len(values), 0)
    assert (found.min, found.max) == (wide.min(), wide.max())
    assert found.mean == pytest.approx(wide.mean(), rel=1e-12)
    assert found.std == pytest.approx(wide.std(), rel=1e-9)
    assert found.quantiles == tuple(np.quantile(wide, np.linspace(0, 1, 11)).tolist())
    assert found.distinct == len(np.unique(values))
    assert found.histogram_edges is not None
    counts, _ = np.histogram(wide, bins=np.array(found.histogram_edges))
    assert found.histogram_counts == tuple(counts.tolist())
    assert found.cumulative is not None
    assert all(count == (wide <= value).sum() for value, count in found.cumulative)
    assert found.cumulative[-1] == (wide.max(), len(wide))
    assert found.approximate is None


def test_whole_numbers_are_counted_while_they_are_few() -> None:
    months = figures_of(feature("int64"), Column(NUMBERS["months"]), 3, (1, 12)).vocabulary
    assert months is not None
    assert dict(months) == {str(m): int((NUMBERS["months"] == m).sum()) for m in range(1, 13)}
    assert [count for _, count in months] == sorted((count for _, count in months), reverse=True)
    assert figures_of(feature("int64"), Column(NUMBERS["wide"]), 3, (-1e9, 1e9)).vocabulary is None


def test_a_value_that_many_rows_share_is_parted_from_those_below_it() -> None:
    values = np.concatenate([np.linspace(-5, -1, 60), np.zeros(40)]).astype(np.float32)
    found = figures_of(feature("float32"), Column(values), 2, (-5, 0))
    assert found.cumulative is not None
    assert found.cumulative[-2:] == ((-1.0, 60), (0.0, 100))


def test_all_splits_have_the_edges_of_the_ranges_and_none_loses_a_value_to_rounding() -> None:
    values = np.array([0.1, 0.2], np.float32)  # float32(0.1) is above 0.1, float32(0.2) too
    found = figures_of(feature("float32"), Column(values), 1, (0.1, 0.2))
    assert found.histogram_edges is not None
    assert (found.histogram_edges[0], found.histogram_edges[-1]) == (0.1, 0.2)
    assert sum(found.histogram_counts or ()) == 2
    assert len(found.histogram_edges) == 21


@pytest.mark.parametrize(
    ("dtype", "values", "count"),
    [
        ("float32", np.array([np.nan, 1, np.nan], np.float32), 1),
        ("int64", np.array([NULL_INT, NULL_INT, 4]), 1),
        ("int64", np.array([NULL_INT, NULL_INT, NULL_INT]), 0),
        ("string", np.array([b"", b"a", b"a"], object), 2),
    ],
)
def test_a_null_is_counted_and_is_no_value(dtype: DType, values: Any, count: int) -> None:
    limits = (1.0, 4.0) if count else None
    found = figures_of(feature(dtype), Column(values), 3, limits)
    assert (found.count, found.missing, found.distinct) == (count, 3 - count, min(count, 1))


def test_words_of_a_dictionary_are_ranked_with_ties_in_their_order() -> None:
    codes = np.array([2, 0, NULL_CODE, 2, 1, 1, NULL_CODE], np.int32)
    described = feature("string", dictionary=("a", "b", "c", "never"))
    found = figures_of(described, Column(codes), 3)
    assert found.vocabulary == (("b", 2), ("c", 2), ("a", 1))
    assert (found.count, found.missing, found.distinct) == (5, 2, 3)


def test_words_without_a_dictionary_are_counted_across_shards() -> None:
    texts = np.array([b"pear", b"fig", b"\xc3\xa4pfel", b"", b"fig", b"pear", b"fig"], object)
    found = figures_of(feature("string"), Column(texts), 3)
    assert found.vocabulary == (("fig", 3), ("pear", 2), ("äpfel", 1))
    assert found.lengths is not None
    assert (found.lengths.min, found.lengths.max) == (3, 6)
    assert found.lengths.mean == pytest.approx((3 * 3 + 2 * 4 + 6) / 6)


@pytest.mark.parametrize("picture", [b"\x89PNG\xff" * 3, b"long " * 400])
def test_pictures_and_documents_are_no_words(picture: bytes) -> None:
    texts = np.array([b"a", picture, b"b", b""], object)
    found = figures_of(feature("string"), Column(texts), 3)
    assert (found.vocabulary, found.distinct) == (None, None)
    assert found.lengths is not None
    assert found.lengths.max == len(picture)
    assert (found.count, found.missing) == (3, 1)


def test_lists_are_described_over_all_their_values_and_counted_by_row() -> None:
    splits = np.array([0, 2, 2, 3, 3])
    valid = np.array([True, True, True, False])
    ragged = Column(np.array([1, 2, 9], np.float32), splits, valid)
    found = figures_of(feature("float32", (None,)), ragged, 2, (1, 9))
    assert (found.count, found.missing, found.mean) == (3, 1, 4.0)
    fixed = Column(np.array([[1, 2], [3, 6]], np.float32))
    found = figures_of(feature("float32", (2,)), fixed, 2, (1, 6))
    assert (found.count, found.missing, found.mean, found.max) == (2, 0, 3.0, 6.0)


def test_a_state_is_the_same_bytes_again() -> None:
    described = [feature("float32")]
    columns = {"c": Column(NUMBERS["normal"])}
    limits = {"c": (-10.0, 30.0)}
    assert collect(described, columns, 5000, limits) == collect(described, columns, 5000, limits)


def test_large_splits_are_within_the_bounds_that_the_file_promises(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state, "MOST_KEPT", 1000)
    values = np.random.default_rng(5).lognormal(0, 2, 60_000).astype(np.float32)
    wide = np.sort(values.astype(np.float64))
    found = figures_of(feature("float32"), Column(values), 4, (wide[0], wide[-1]))
    assert set(found.approximate or ()) == {"quantiles", "cumulative", "distinct"}
    assert (found.min, found.max) == (wide[0], wide[-1])
    assert found.quantiles is not None
    assert found.cumulative is not None
    assert (found.quantiles[0], found.quantiles[-1]) == (wide[0], wide[-1])
    most = len(values) / 4096 + 2
    for share, value in zip(np.linspace(0, 1, 11), found.quantiles, strict=True):
        assert abs(np.searchsorted(wide, value) - share * len(wide)) <= most
    for value, count in found.cumulative:
        assert abs((wide <= value).sum() - count) <= most
    distinct = len(np.unique(values))
    assert abs((found.distinct or 0) - distinct) < 4 * 0.016 * distinct


def test_few_values_stay_exact_in_a_large_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MOST_KEPT", 1000)
    found = figures_of(feature("int64"), Column(NUMBERS["months"]), 3, (1, 12))
    assert found.approximate is None
    assert found.distinct == 12
    assert found.vocabulary is not None


def test_the_most_frequent_words_of_a_large_split_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state, "MOST_KEPT", 1000)
    rng = np.random.default_rng(6)
    numbers = np.where(rng.random(40_000) < 0.5, rng.integers(0, 5, 40_000), np.arange(40_000))
    texts = np.empty(len(numbers), object)
    texts[:] = [b"w%d" % n for n in numbers]
    found = figures_of(feature("string"), Column(texts), 3)
    assert set(found.approximate or ()) == {"distinct", "vocabulary"}
    assert found.vocabulary is not None
    top = dict(found.vocabulary[:5])
    assert set(top) == {f"w{n}" for n in range(5)}
    for word, count in top.items():
        exact = int((texts == word.encode()).sum())
        assert exact - len(texts) / 4096 - 1 <= count <= exact
    exact = len(np.unique(numbers))
    assert abs((found.distinct or 0) - exact) < 4 * 0.016 * exact


def test_states_of_many_parts_stay_small_and_within_their_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state, "MOST_KEPT", 1000)
    monkeypatch.setattr(state, "_ALL_APART", 1 << 12)
    values = np.random.default_rng(5).normal(0, 1, 60_000).astype(np.float32)
    assert state.apart(3000, 60_000) == 512
    found = figures_of(feature("float32"), Column(values), 20, (-6, 6))
    assert found.cumulative is not None
    for value, count in found.cumulative:
        assert abs((values <= value).sum() - count) <= len(values) / 512 + 20
