"""Randomness inside a model (dropout) as a function of (seed, step, replica, microbatch).

Keras keeps a mirrored counter instead, which gives all replicas the same mask and needs the counter
in the checkpoint. `reseed` puts stateless generators into the layers that have one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

# Replicas of MirroredStrategy are traced in threads of their own.
_now = threading.local()


class StepSeeds(keras.random.SeedGenerator):
    """A generator whose next seed depends on the step being traced, not on what came before."""

    def __init__(self, seed: int, number: int) -> None:
        super().__init__(seed=seed)
        self._base = (seed, number)

    def next(self, ordered: bool = True) -> tf.Tensor:
        """Returns int32 [2]; outside `at` (serving, building) a constant."""
        seed = tf.constant(self._base, tf.int32)
        for part in getattr(_now, "parts", ()):
            seed = tf.random.fold_in(seed, tf.cast(part, tf.int32))
        return seed


@contextmanager
def at(*parts: Any) -> Iterator[None]:
    """Makes `parts` (int tensors: step, replica, microbatch) decide the seeds drawn inside."""
    _now.parts = parts
    try:
        yield
    finally:
        del _now.parts


def reseed(models: Mapping[str, keras.Model], seed: int) -> None:
    """Gives every layer that draws random numbers a stateless generator of its own."""
    for number, (_, layer) in enumerate(_drawing(models)):
        # Keras tracks attributes once a layer is built, and would refuse a new one.
        object.__setattr__(layer, "seed_generator", StepSeeds(seed, number))


def silence(models: Mapping[str, keras.Model]) -> list[str]:
    """Makes every layer that draws random numbers work as in serving; returns their names."""
    names = []
    for name, layer in _drawing(models):
        names.append(name)
        object.__setattr__(layer, "call", _as_in_serving(layer.call))
    return names


def _drawing(models: Mapping[str, keras.Model]) -> Iterator[tuple[str, Any]]:
    for attribute, model in models.items():
        for layer in model._flatten_layers():
            if isinstance(getattr(layer, "seed_generator", None), keras.random.SeedGenerator):
                yield f"{attribute}/{layer.name}", layer


def _as_in_serving(call: Callable[..., Any]) -> Callable[..., Any]:
    def serving(*args: Any, **arguments: Any) -> Any:
        return call(*args, **{**arguments, "training": False})

    return serving
