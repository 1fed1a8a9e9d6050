"""Figures of columns, shard by shard: each shard gives a small state, states merge into a split's.

`collect` and `merge` are all that others call; `numbers`, `codes` and `texts` know one kind of
column each, `state` the bytes between them, `reading` how figures of a finished dataset are taken.
A state depends on the rows of its shard alone and states merge in the order of the shards, so
figures are the same whoever computed which shard.
"""

from components.shard_data.figures.collecting import collect, merge
from components.shard_data.figures.reading import of_dataset

__all__ = ["collect", "merge", "of_dataset"]
