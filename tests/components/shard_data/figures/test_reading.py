"""Figures taken again from the shards are those that sharding wrote, in both layouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.shard_data import figures
from tests.components.shard_data.made import make_text
from trainer.data.dataset import Dataset
from trainer.errors import UsageError

TEXT = "n,x,word,y\n" + "".join(
    f"{i},{'' if i % 7 == 0 else i / 3},{'abc'[i % 3]},{i % 2}\n" for i in range(400)
)


@pytest.mark.parametrize("layout", ["blocks", "rows"])
def test_figures_read_from_shards_are_those_of_the_rows(tmp_path: Path, layout: str) -> None:
    make_text(tmp_path, TEXT, split="train=0.8,eval=0.2", layout=layout, block_rows=16, shards=3)
    dataset = Dataset.open(str(tmp_path / "out"))
    for split, described in dataset.manifest.splits.items():
        found = figures.of_dataset(dataset, split)
        written = dataset.statistics.splits[split]
        assert found.rows == described.rows == written.rows
        for name, kept in written.features.items():
            again = found.features[name]
            assert (again.count, again.missing) == (kept.count, kept.missing)
            assert again.distinct == kept.distinct
            assert again.mean == pytest.approx(kept.mean)
            assert again.quantiles == kept.quantiles
            assert again.vocabulary == kept.vocabulary
    edges = {
        figures.of_dataset(dataset, split).features["n"].histogram_edges
        for split in dataset.manifest.splits
    }
    assert len(edges) == 1


def test_a_damaged_shard_is_named(tmp_path: Path) -> None:
    manifest = make_text(tmp_path, TEXT, shards=1)
    shard = tmp_path / "out" / manifest.splits["train"].shards[0].path
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)
    with pytest.raises(UsageError, match=shard.name):
        figures.of_dataset(Dataset.open(str(tmp_path / "out")), "train")
