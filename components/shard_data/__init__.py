"""Step 1: raw tables become a dataset directory (manifest, shards, schema, statistics).

`shard.shard(options)` is the whole step. The way of the data, one module each: `sources` (which
files, unpacked) → `delimited`, `parquet` (one file) → `readers` (all files as one table) → `casts`,
`times`, `typed` (types decided over the whole input) → `labels` → `shuffle`, `split` → `encode`,
`examples` (bytes) → `statistics`, `schema` → `directory` (all of it appears at once, or none).
"""
