"""Worked examples of Tasks that the built-in ones are not: read them, then write your own.

Each is used by its name: `--task trainer.examples.gan:Gan`.
"""
