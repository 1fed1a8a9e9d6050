"""Images and texts from files to a served model: two workers learn what one learns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from sklearn.datasets import load_digits

from tests.components.models import castell
from tests.trainer.examples.runs import Start, ask, difference, finish, train, weights
from tests.trainer.tasks.made import make, paragraphs
from trainer.data.dataset import Dataset

TOLERANCE = 1e-5
STEPS = 60
# Sooner or later a value of a small net crosses zero in one step on one worker and in the next on
# two, and rounding grows a hundredfold at once: with any optimizer, at some step or other.
COMPARED_STEPS = 5


def learns_the_same(start: Start, root: Path, data: Dataset, **keys: Any) -> dict[str, Any]:
    """Trains on one and on two workers, compares; returns the last evaluation on the way."""
    keys = {
        "data": data.path, "global_batch": 64, "eval_split": "test", "eval_every": STEPS,
        "steps": STEPS, "checkpoint_every": COMPARED_STEPS,
        "keep_checkpoints": STEPS, **keys,
    }  # fmt: skip
    finish(*(train(start, root / f"run-{n}", workers=n, **keys) for n in (1, 2)))
    one, two = (
        ask(start, weights, root / f"run-{n}", COMPARED_STEPS, log=root / f"weights-{n}.log")
        for n in (1, 2)
    )
    assert difference(one, two) < TOLERANCE
    lines = [json.loads(line) for line in (root / "run-2" / "metrics.jsonl").open()]
    return dict(next(line for line in lines if line["split"] == "test"))


def served(start: Start, root: Path, column: str) -> Any:
    """Exports by the command; returns the signature that takes strings."""
    argv = ["export", "--run", root / "run-2", "--output", root / "model"]
    start(castell, [str(word) for word in argv], log=root / "export.log").expect(0)
    signature = tf.saved_model.load(str(root / "model")).signatures["serving_default"]
    spec = signature.structured_input_signature[1][column]
    assert (spec.dtype, spec.shape.as_list()) == (tf.string, [None])
    return signature


@pytest.mark.timeout(280)
def test_images_from_png_to_a_served_model(start: Start, tmp_path: Path) -> None:
    found = load_digits()
    levels = (found.images[..., None] * 255 / 16).round().astype(np.uint8)
    files = [tf.io.encode_png(pixels).numpy() for pixels in levels]
    data = make(tmp_path / "data", {"file": files, "y": found.target})
    figures = learns_the_same(
        start, tmp_path, data, task="image", size=8, channels=1, widths="8,16", crop=1,
        learning_rate=0.01,
    )  # fmt: skip
    assert figures["accuracy"] > 0.7
    signature = served(start, tmp_path, "file")
    said = signature(file=tf.constant(files[:100]))["probabilities"].numpy()
    assert np.mean(said.argmax(axis=1) == found.target[:100]) > 0.7


@pytest.mark.timeout(280)
def test_texts_from_words_to_a_served_model(start: Start, tmp_path: Path) -> None:
    columns = paragraphs()
    data = make(tmp_path / "data", columns)
    figures = learns_the_same(
        start, tmp_path, data, task="text", length=32, vocabulary=1000, embedding_size=16,
        learning_rate=0.02,
    )  # fmt: skip
    assert figures["accuracy"] > 0.85
    assert figures["auc"] > 0.9
    signature = served(start, tmp_path, "doc")
    said = signature(doc=tf.constant(columns["doc"]))["probability"].numpy()
    assert np.mean((said > 0.5) == np.array(columns["y"])) > 0.85


@pytest.mark.timeout(120)
def test_what_is_no_image_ends_training_in_one_line(start: Start, tmp_path: Path) -> None:
    white = bytes(tf.io.encode_png(np.full((4, 4, 1), 255, np.uint8)).numpy())
    files = [white] * 99 + [b"<html>not found"]
    data = make(tmp_path / "data", {"file": files * 2, "y": [0, 1] * 100})
    (worker,) = train(
        start, tmp_path / "run", data=data.path, task="image", size=4, widths="4", steps=60,
        global_batch=16,
    )  # fmt: skip
    log = worker.expect(2)
    assert "castell: error: preprocess refuses a row of train: [column file: not a PNG" in log
    assert "<html>not found" in log
    assert "Traceback" not in log
