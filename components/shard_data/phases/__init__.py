"""The phases of sharding, each a function over jobs that know nothing of each other.

scan   piece → its columns as read, in the work directory, and what they say of types
rank   piece → which rows are kept, their keys and splits
route  piece → its columns as stored, parted by shard, in the work directory
write  shard → the file, and its part of the statistics
"""

from components.shard_data.phases import rank, route, scan, write

__all__ = ["rank", "route", "scan", "write"]
