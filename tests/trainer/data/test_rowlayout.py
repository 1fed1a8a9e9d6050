"""Layout `rows` brings the same columns, in the same order, as layout `blocks`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from components.shard_data.options import ShardOptions
from components.shard_data.shard import shard
from trainer.data.blocks import concat
from trainer.data.dataset import Dataset
from trainer.data.rows import label_values, raw_features, read_rows

CSV = "\n".join(
    [
        "number,count,word,label",
        *(
            f"{i / 7 if i % 5 else ''},{i if i % 3 else ''},w{i % 4 or ''},{i % 2}"
            for i in range(300)
        ),
    ]
)


def test_both_layouts_read_the_same(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(CSV)
    found = []
    for layout in ("blocks", "rows"):
        output = str(tmp_path / layout)
        shard(
            ShardOptions(
                sources=(str(tmp_path / "table.csv"),), output=output, label="label",
                layout=layout, shards=3, block_rows=16,
            )
        )  # fmt: skip
        dataset = Dataset.open(output)
        whole = concat(list(read_rows(dataset, "train")))
        part = concat(list(read_rows(dataset, "train", 50, 101)))
        assert part.row_id.tolist() == whole.row_id[50:101].tolist()
        found.append(
            (
                raw_features(dataset, whole, ["number", "count", "word"]),
                label_values(dataset, whole),
            )
        )
    (blocks, block_labels), (rows, row_labels) = found
    for name, values in blocks.items():
        np.testing.assert_array_equal(values, rows[name])
    np.testing.assert_array_equal(block_labels, row_labels)
