"""What the benchmarks of sharding have in common."""
