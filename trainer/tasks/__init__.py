"""The tasks that come with the trainer, by the names of `--task`; and how a user's own is found.

Options can be checked before TensorFlow is imported, so they stand in modules of their own.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from trainer import users
from trainer.config import TrainConfig, parse_options
from trainer.data.dataset import Dataset
from trainer.errors import UsageError, suggestion

if TYPE_CHECKING:
    from trainer.task import Task

BUILT_IN = {
    "tabular": "trainer.tasks.tabular.task:Tabular",
    "image": "trainer.tasks.image.task:Image",
    "text": "trainer.tasks.text.task:Text",
}
BUILT_IN_OPTIONS = {
    "tabular": "trainer.tasks.tabular.options:TabularOptions",
    "image": "trainer.tasks.image.options:ImageOptions",
    "text": "trainer.tasks.text.options:TextOptions",
}


def options_class(name: str) -> Any | None:
    """Returns the options of a built-in task, or None for a user's own.

    Raises:
      UsageError: there is no such task. Of a user's module only its top-level package is looked
        for: nothing of theirs runs yet.
    """
    _check_name(name)
    if name in BUILT_IN_OPTIONS:
        return _load(BUILT_IN_OPTIONS[name])
    users.check_there(name, f"--task {name}")
    return None


def task_class(name: str) -> Any:
    """Imports and returns the Task class called `name`.

    Raises:
      UsageError: there is no such module or class, or it is not a Task.
    """
    _check_name(name)
    found = users.load(BUILT_IN.get(name, name), f"--task {name}")
    from trainer.task import Task

    if not (isinstance(found, type) and issubclass(found, Task)):
        raise UsageError(
            f"--task {name}: {name.partition(':')[2]} is not a subclass of trainer.task.Task"
        )
    return found


def build_task(config: TrainConfig, dataset: Dataset) -> Task:
    """Imports, configures and builds the Task; inside a scope its variables are distributed."""
    task_type = task_class(config.task)
    task: Task = task_type(parse_options(task_type.Options, config.options))
    from trainer.tasks.attributes import check_attributes
    from trainer.tasks.policy import policy

    with policy(config.precision):
        task.build(dataset)
    check_attributes(task, config.task)
    if not task.models():
        raise UsageError(f"--task {config.task}: build(data) set no Keras model on the task")
    for attribute, model in task.models().items():
        if not model.built:
            # Weights that come into being in the first step are neither trained nor saved.
            raise UsageError(
                f"--task {config.task}: build(data) left {attribute} without weights: give it a "
                "keras.Input, or call it once on a batch of zeros"
            )
    return task


def _check_name(name: str) -> None:
    if name not in BUILT_IN and not users.is_name(name):
        near = suggestion(name, list(BUILT_IN))
        raise UsageError(
            f"unknown task {name!r}{near} (there are {', '.join(BUILT_IN)}, "
            "or your own as pkg.module:Class)"
        )


def _load(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)
