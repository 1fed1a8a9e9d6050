"""The run directory and what happens around the steps: checkpoints, status, faults, writers."""
