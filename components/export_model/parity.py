"""The exported file, asked in a clean process, must say what the evaluated model says.

Run as a program, this module loads a SavedModel with nothing but TensorFlow (no castell code, no
Keras, so that a file which needs them fails here) and answers the requests of a file through both
signatures.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

TOLERANCE = 1e-5

Outputs = Mapping[str, npt.NDArray[Any]]


class ParityError(Exception):
    """The clean process failed; the text is the end of what it printed."""


def ask(saved_model: Path, requests: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Returns the outputs of each signature by name, from a process of its own.

    Args:
      saved_model: the directory.
      requests: signature to its inputs by name, arrays [rows, …].

    Raises:
      ParityError: the file cannot be loaded or does not answer.
    """
    asked, answered = saved_model.parent / "requests.npz", saved_model.parent / "outputs.npz"
    flat = {f"{signature}:{name}": v for signature, r in requests.items() for name, v in r.items()}
    np.savez(asked, **flat)
    command = [sys.executable, "-m", __spec__.name, str(saved_model), str(asked), str(answered)]
    # The clean process must find this very module, from whatever directory castell was started.
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONPATH": path}
    try:
        result = subprocess.run(
            command, env={**os.environ, **quiet}, capture_output=True, text=True, check=False
        )
        if result.returncode:
            raise ParityError(result.stderr.strip()[-4000:])
        outputs: dict[str, dict[str, Any]] = {signature: {} for signature in requests}
        with np.load(answered, allow_pickle=True) as file:
            for key in file.files:
                signature, _, name = key.partition(":")
                outputs[signature][name] = file[key]
        return outputs
    finally:
        asked.unlink(missing_ok=True)
        answered.unlink(missing_ok=True)


def largest_difference(expected: npt.NDArray[Any], found: npt.NDArray[Any]) -> float:
    """Returns max |found - expected| / max(1, |expected|); infinity for other shapes or kinds.

    Relative above 1, as float32 is: a probability is compared absolutely, a price of a million to
    the same number of digits. A NaN equals a NaN only.
    """
    if expected.shape != found.shape:
        return float("inf")
    if expected.size == 0:
        return 0.0
    if expected.dtype.kind not in "fiub" or found.dtype.kind not in "fiub":
        return 0.0 if np.array_equal(expected, found) else float("inf")
    a, b = expected.astype(np.float64), found.astype(np.float64)
    with np.errstate(invalid="ignore"):
        difference = np.abs(b - a) / np.maximum(1, np.abs(a))
    difference[(a == b) | (np.isnan(a) & np.isnan(b))] = 0
    return float(np.where(np.isnan(difference), np.inf, difference).max())


def compare(expected: Outputs, found: Outputs) -> dict[str, float]:
    """Returns the largest difference of each output; infinity where one side lacks it."""
    return {
        name: largest_difference(np.asarray(expected[name]), np.asarray(found[name]))
        if name in expected and name in found
        else float("inf")
        for name in sorted({*expected, *found})
    }


def _answer(saved_model: str, asked: str, answered: str) -> None:
    import tensorflow as tf

    loaded = tf.saved_model.load(saved_model)
    requests: dict[str, dict[str, Any]] = {}
    with np.load(asked, allow_pickle=True) as file:
        for key in file.files:
            signature, _, name = key.partition(":")
            requests.setdefault(signature, {})[name] = tf.constant(file[key])
    np.savez(
        answered,
        **{
            f"{signature}:{name}": value.numpy()
            for signature, inputs in requests.items()
            for name, value in loaded.signatures[signature](**inputs).items()
        },
    )


if __name__ == "__main__":
    _answer(*sys.argv[1:])
