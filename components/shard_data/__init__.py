"""Step 1: raw tables become a dataset directory (manifest, shards, schema, statistics).

`shard.shard(options)` is the whole step; `produce` is the way from files to shards, `directory`
makes it appear at once or not at all, `append` is what a dataset asks of files added to it.

The way of the data, a package each: `inputs` (which files, unpacked and cut into pieces) →
`formats` (a piece's columns) → `types` (decided from what all pieces say) → `arrange` (splits,
order, shards) → `encoding` (bytes) and `figures` (statistics). `phases` are the parts of it that
run piece by piece or shard by shard, `engine` is who runs them, `gather` and `settle` what is
decided in between, `work` where they leave things for each other.
"""
