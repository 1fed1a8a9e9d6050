"""Castell's trainer: a custom training loop that runs the same on one device or many machines.

It stands alone: `python -m trainer --data DIR --output DIR --task tabular`.
"""
