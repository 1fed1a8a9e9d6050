"""Measured claims: each bench runs ours and another's way in turns and prints JSON lines.

`python -m tests.benchmarks [NAME]…`. A bench is a module here with `bench()`, which returns a
Result or yields several; `harness` pairs, interleaves and takes medians. They are no tests: nothing
in the suite asserts a time.
"""
