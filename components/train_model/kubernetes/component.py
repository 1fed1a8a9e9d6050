"""The KFP face of training in pods of its own: as `train_model`, on a cluster."""

from typing import Any

from kfp import dsl
from kfp.dsl import Dataset, Input, Model, Output

from components.image import IMAGE


@dsl.component(
    base_image=IMAGE,
    install_kfp_package=False,
    # What a pipeline's author sets on this task is meant for the workers; secrets and volumes are
    # for both, since the step reads what the workers have written.
    task_config_passthroughs=[
        dsl.TaskConfigField.RESOURCES,
        dsl.TaskConfigField.KUBERNETES_TOLERATIONS,
        dsl.TaskConfigField.KUBERNETES_NODE_SELECTOR,
        dsl.TaskConfigField.KUBERNETES_AFFINITY,
        dsl.TaskConfigPassthrough(field=dsl.TaskConfigField.ENV, apply_to_task=True),
        dsl.TaskConfigPassthrough(field=dsl.TaskConfigField.KUBERNETES_VOLUMES, apply_to_task=True),
    ],
)
def train_model(
    dataset: Input[Dataset],
    run: Output[Model],
    task_config: dsl.TaskConfig,
    image: str,
    task: str = "tabular",
    workers: int = 1,
    steps: int = 0,
    epochs: float = 0.0,
    config: dict[str, Any] = {},
    kubernetes: dict[str, Any] = {},
) -> None:
    """Trains a Task on a dataset, in an Indexed Job, and keeps the run.

    Args:
        dataset: what shard_data made.
        run: the run directory; evaluate_model and export_model take it.
        task_config: what is set on this task: resources, tolerations, environment, volumes, …
        image: of the workers.
        task: tabular, or your own as pkg.module:Class.
        workers: pods that train together.
        steps: optimizer steps in all; 0: by epochs.
        epochs: passes over the training split; 0: the trainer's default.
        config: further keys of the trainer and of the Task, as in `castell train --config`; `data`:
            where the workers find the dataset, if a volume of theirs holds it.
        kubernetes: limits of the Job, such as queue_timeout_seconds.
    """
    from components.train_model.kubernetes.step import run as work

    work(
        dataset, run, task_config, image=image, task=task, workers=workers, steps=steps,
        epochs=epochs, config=config, kubernetes=kubernetes,
    )  # fmt: skip
