"""A user's module that runs a TensorFlow op when it is imported."""

from __future__ import annotations

import tensorflow as tf

from trainer.tasks.tabular.task import Tabular

SCALE = tf.constant(2.0) * 3.0


class Eager(Tabular):
    """The tabular task, from a module that did not wait for a strategy."""
