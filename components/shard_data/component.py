"""The KFP face of sharding: source URIs in, Dataset out."""

from typing import Any

from kfp import dsl
from kfp.dsl import Dataset, Output

from components.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def shard_data(
    sources: list[str],
    label: str,
    dataset: Output[Dataset],
    split: str = "train=0.8,eval=0.1,test=0.1",
    split_by: str = "",
    null_values: list[str] = [],
    types: dict[str, str] = {},
    drop: list[str] = [],
    label_kind: str = "",
    drop_missing_label: bool = False,
    layout: str = "blocks",
    shards: int = 0,
    seed: int = 0,
    options: dict[str, Any] = {},
) -> None:
    """Turns tables into a dataset directory: shards, schema, statistics and a manifest.

    Args:
        sources: files, directories or globs: tables, JSON lines, Parquet, TFRecords, images.
        label: the column that is to be learned.
        dataset: the dataset directory.
        split: fractions by name.
        split_by: a column whose equal values must not be in two splits.
        null_values: texts that mean null, everywhere (NA) or in one column (COL=NA).
        types: column types that are not to be inferred, such as {"zip": "string"}.
        drop: columns to leave out.
        label_kind: binary, multiclass or regression; empty: by the values.
        drop_missing_label: leave rows without a label out, instead of refusing them.
        layout: blocks (fast) or rows (one tf.train.Example a row).
        shards: files a split; 0: by size.
        seed: of the split and the shuffle.
        options: the other options of `castell shard`, such as {"delimiter": ";"}.
    """
    from components.shard_data import step

    step.run(
        sources,
        dataset,
        label=label,
        split=split,
        split_by=split_by,
        null_values=null_values,
        types=types,
        drop=drop,
        label_kind=label_kind,
        drop_missing_label=drop_missing_label,
        layout=layout,
        shards=shards,
        seed=seed,
        options=options,
    )
