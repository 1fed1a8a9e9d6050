"""Writes the files of an export; each format is one function."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf

from components.export_model.signatures import Served

# TensorFlow's own name for files that travel with a SavedModel and that it does not read.
EXTRA = "assets.extra"
DESCRIPTION = "castell.json"


def write_saved_model(served: Served, directory: Path) -> None:
    """Writes the SavedModel of `served` into an empty directory."""
    tf.saved_model.save(served, str(directory), signatures=dict(served.functions))
    (directory / EXTRA).mkdir()
