"""Which row goes where: its split, its shard, its place there.

Each row has a key (`keys`), a hash of the seed and its number; a split's rows stand in the order of
their keys. `ranks` finds the keys at which shards and splits end without holding all of them;
`split` knows the rules by which rows are parted.
"""
