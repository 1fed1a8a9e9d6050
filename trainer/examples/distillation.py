"""Distillation: a small student learns from the labels and from what a trained teacher says.

    castell train --data flights --output teacher --hidden 512,256
    castell train --data flights --output student --hidden 16 \
        --task trainer.examples.distillation:Distillation --teacher teacher

What it shows: a Task that extends a built-in one, with options of its own; the weights of another
run inside the step, frozen (they are no attribute of this Task that is a Keras model, so nothing
trains, averages or saves them); and training that needs what serving does not.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
from pydantic import Field

from trainer.data.dataset import Dataset
from trainer.errors import UsageError
from trainer.task import Batch, Objective, Task, Tensors
from trainer.tasks.tabular.options import TabularOptions
from trainer.tasks.tabular.task import Tabular
from trainer.trained import load

_SMALLEST_PROBABILITY = 1e-7
_OF_TEACHER = "teacher/"


class DistillationOptions(TabularOptions):
    """Settings of the student, and of how it is taught."""

    teacher: str = Field(description="run directory of the teacher: any task with the same label")
    temperature: float = Field(2.0, gt=0, description="evens out what both say, to show the rest")
    soft: float = Field(0.7, ge=0, le=1, description="share of the teacher in the loss")


class Distillation(Tabular):
    """A tabular student of a classifier."""

    Options = DistillationOptions
    options: DistillationOptions
    # Codes count this data set's words; the teacher may know those of another.
    takes_codes = False
    teacher: Task | None = None

    def build(self, data: Dataset) -> None:
        """Makes the student, as `Tabular` does."""
        super().build(data)
        self.data = data

    def objectives(self) -> Sequence[Objective]:
        """The student's loss over the student's weights.

        Training asks for this first, inside the strategy's scope; evaluation and export of the
        student never do. So the teacher is loaded here, and whoever serves the student needs none.
        """
        if self.teacher is None:
            self.teacher = self._load_teacher()
        return super().objectives()

    def preprocess(self, features: Tensors) -> Tensors:
        """The student's inputs and, while it is taught, the teacher's."""
        own = super().preprocess(features)
        if self.teacher is None:
            return own
        taught = self.teacher.preprocess(features)
        return {**own, **{_OF_TEACHER + name: value for name, value in taught.items()}}

    def loss(self, batch: Batch, training: bool) -> tf.Tensor:
        """(1 - soft) * cross-entropy with the label + soft * cross-entropy with the teacher.

        The gradients of the second shrink with the square of the temperature, which is made good.
        """
        assert self.teacher is not None, "objectives() comes first"
        own, taught = _apart(batch.features)
        logits = self.model(own, training=training)
        temperature = self.options.temperature
        says = _log_probabilities(self.head.answer(logits)) / temperature
        hears = _log_probabilities(self.teacher.serve(taught)) / temperature
        from_teacher = tf.nn.softmax_cross_entropy_with_logits(
            tf.stop_gradient(tf.nn.softmax(hears)), says
        )
        soft = self.options.soft
        hard = self.head.loss(batch.label, logits)
        return (1 - soft) * hard + soft * temperature**2 * from_teacher

    def serve(self, features: Tensors) -> Tensors:
        """What the student says."""
        return super().serve(_apart(features)[0])

    def _load_teacher(self) -> Task:
        run = self.options.teacher
        loaded = load(run)
        label, own = loaded.dataset.manifest.label, self.data.manifest.label
        if (label.kind, label.classes) != (own.kind, own.classes) or own.kind == "regression":
            raise UsageError(f"teacher ({run}) must be a classifier of the same label, {own.name}")
        read = {f.name for f in self.inputs(self.data.manifest)}
        more = [f.name for f in loaded.task.inputs(loaded.dataset.manifest) if f.name not in read]
        if more:
            raise UsageError(f"teacher ({run}) reads {', '.join(more)}, which the student does not")
        return loaded.task


def _apart(features: Tensors) -> tuple[Tensors, Tensors]:
    """Returns the student's and the teacher's features."""
    own = {k: v for k, v in features.items() if not k.startswith(_OF_TEACHER)}
    return own, {k.removeprefix(_OF_TEACHER): v for k, v in features.items() if k not in own}


def _log_probabilities(answer: Tensors) -> tf.Tensor:
    """Maps what a classifier serves to float32 [rows, classes]."""
    if "probability" in answer:
        probabilities = tf.stack([1 - answer["probability"], answer["probability"]], axis=1)
    else:
        probabilities = answer["probabilities"]
    return tf.math.log(tf.maximum(probabilities, _SMALLEST_PROBABILITY))
