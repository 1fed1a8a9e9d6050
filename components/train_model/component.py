"""The KFP face of training: Dataset in, Model (the run directory) out."""

from typing import Any

from kfp import dsl
from kfp.dsl import Dataset, Input, Model, Output

from components.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def train_model(
    dataset: Input[Dataset],
    run: Output[Model],
    task: str = "tabular",
    workers: int = 1,
    steps: int = 0,
    epochs: float = 0.0,
    config: dict[str, Any] = {},
) -> None:
    """Trains a Task on a dataset and keeps the run: configuration, checkpoints, metrics.

    Args:
        dataset: what shard_data made.
        run: the run directory; evaluate_model and export_model take it.
        task: tabular, or your own as pkg.module:Class.
        workers: worker processes that train together, on this step's machine.
        steps: optimizer steps in all; 0: by epochs.
        epochs: passes over the training split; 0: the trainer's default.
        config: further keys of the trainer and of the Task, as in `castell train --config`.
    """
    from components.train_model import step

    step.run(dataset, run, task=task, workers=workers, steps=steps, epochs=epochs, config=config)
