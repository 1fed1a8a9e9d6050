"""Measured claims: each bench runs ours and another's way in turns and prints one JSON line.

`python -m tests.benchmarks [NAME]`. A bench is a module here with `bench() -> Result`; `harness`
pairs, interleaves and takes medians. They are no tests: nothing in the suite asserts a time.
"""
