"""Step 2: a dataset becomes a run directory, by `python -m trainer` in a process of its own.

`component` is the KFP face, `step` describes the artifact, `launch` runs the trainer and passes on
its output, its signals and the meaning of its exit code.
"""
