"""Tasks that return something else than they must."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from trainer.tasks.tabular.task import Tabular


class NoFeatures(Tabular):
    def preprocess(self, features: Any) -> Any:
        super().preprocess(features)


class OneTensor(Tabular):
    def preprocess(self, features: Any) -> Any:
        return next(iter(super().preprocess(features).values()))


class LostRows(Tabular):
    def augment(self, features: Any, seed: tf.Tensor) -> Any:
        return {name: value[1:] for name, value in features.items()}


class NoStep(Tabular):
    def train_step(self, batch: Any, scale: Any) -> Any:
        super().train_step(batch, scale)


class NoLoss(Tabular):
    def loss(self, batch: Any, training: bool) -> Any:
        super().loss(batch, training)


class Penalties(Tabular):
    def penalty(self) -> Any:
        return tf.ones([3])


class NoServing(Tabular):
    def serve(self, features: Any) -> Any:
        return super().serve(features)["probability"]


class Branching(Tabular):
    """No slip: TensorFlow rewrites an `if` over tensors."""

    def serve(self, features: Any) -> Any:
        served = super().serve(features)
        if tf.reduce_sum(served["probability"]) > 1e9:
            served = {"probability": served["probability"] * 0}
        return served


class Columns(Tabular):
    def serve(self, features: Any) -> Any:
        return {"probability": super().serve(features)["probability"][:, None]}


class Steps(Tabular):
    def metrics(self) -> Any:
        return {"step": keras.metrics.AUC()}
