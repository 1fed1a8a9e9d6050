"""Pipelines of the components, compiled for three targets, and the `castell` command.

`train_evaluate_export` is the DAG; `targets` says where its training runs; `compile` writes YAML,
`run` runs it on this machine; `cli` finds the command.
"""
