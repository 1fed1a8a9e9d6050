"""What follows from the kind of label: losses, answers and metrics, each weighted by row."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from trainer.tasks.head import Head

WEIGHT = tf.constant([1.0, 1.0, 2.0, 0.0])  # the last row is padding


def figures(head: Head, label: tf.Tensor, logits: tf.Tensor) -> dict[str, float]:
    (said,) = head.answer(logits).values()
    metrics = head.metrics()
    for metric in metrics.values():
        metric.update_state(label, said, sample_weight=WEIGHT)
    return {name: float(metric.result()) for name, metric in metrics.items()}


def test_binary() -> None:
    head = Head("binary", 1)
    label, logits = tf.constant([1.0, 0.0, 1.0, 1.0]), tf.constant([[2.0], [-1.0], [-3.0], [-9.0]])
    assert figures(head, label, logits) == {
        "accuracy": pytest.approx(2 / 4), "auc": pytest.approx(1 / 3, abs=0.01)
    }  # fmt: skip
    said = head.answer(logits)["probability"].numpy()
    assert head.loss(label, logits).numpy() == pytest.approx(
        -np.log(np.where(label == 1, said, 1 - said)), rel=1e-5
    )


def test_multiclass() -> None:
    head = Head("multiclass", 3)
    label, logits = (
        tf.constant([0, 1, 2, 0]),
        tf.constant([[9.0, 0, 0], [9, 0, 0], [0, 0, 9], [0.0] * 3]),
    )
    assert figures(head, label, logits) == {"accuracy": pytest.approx(3 / 4)}
    assert np.sum(head.answer(logits)["probabilities"], axis=1) == pytest.approx(1)


def test_regression_is_in_the_units_of_the_label() -> None:
    head = Head("regression", 1, mean=100.0, std=10.0)
    label, logits = (
        tf.constant([100.0, 110.0, 90.0, 0.0]),
        tf.constant([[0.0], [0.0], [-2.0], [9.0]]),
    )
    assert head.answer(logits)["prediction"].numpy().tolist() == [100, 100, 80, 190]
    assert figures(head, label, logits) == {
        "mae": pytest.approx(30 / 4), "rmse": pytest.approx(np.sqrt(300 / 4))
    }  # fmt: skip
    assert head.loss(label, logits).numpy()[:3] == pytest.approx([0, 0.5, 0.5])
