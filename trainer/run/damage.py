"""What reading may raise if a file was cut, damaged, or written by something else."""

from __future__ import annotations

# OverflowError: of 1e400, which JSON takes for infinity. RecursionError: of 1,000 brackets.
DAMAGED = (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError)
