"""A Kubeflow Pipelines cluster: training is an Indexed Job of its own, made by a small step.

What is set on the training task (resources, secrets, tolerations, volumes) is meant for the
workers: KFP hands it on to the step, which puts it into their pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from components.image import with_image
from pipelines.targets.kfp.settings import KfpSettings


@dataclass(frozen=True)
class Kfp:
    """The target; `workers` is a parameter of the pipeline."""

    settings: KfpSettings
    image: str
    fixed_workers: int | None = None

    def train(self, component: Any, inputs: Mapping[str, Any]) -> Any:
        """Returns the task that makes the Job."""
        from components.train_model.kubernetes.component import train_model

        settings = self.settings
        make = with_image(train_model, self.image)
        task = make(**inputs, image=self.image, kubernetes=settings.job_options())
        task.set_cpu_request(settings.cpu).set_memory_request(settings.memory)
        # Memory is no loan: more than was asked for would be taken back by force. CPU is.
        task.set_memory_limit(settings.memory)
        if settings.accelerator:
            task.set_accelerator_type(settings.accelerator)
            task.set_accelerator_limit(settings.accelerators)
        self._place(task)
        self._store(task)
        return task

    def reach(self, task: Any) -> None:
        """Lets the step read sources in the cluster's own object store."""
        self._store(task)

    def release(self, model: Any) -> None:
        """Nothing follows the export."""

    def _place(self, task: Any) -> None:
        from kfp import kubernetes

        for key, value in self.settings.node_selector.items():
            kubernetes.add_node_selector(task, key, value)
        for toleration in self.settings.tolerations:
            kubernetes.add_toleration(task, **toleration.model_dump(exclude_none=True))
        for claim, path in self.settings.volumes.items():
            kubernetes.mount_pvc(task, claim, path)

    def _store(self, task: Any) -> None:
        """Lets step and workers use the cluster's own object store; gs:// goes by identity."""
        from kfp import kubernetes

        settings = self.settings
        if settings.s3_endpoint:
            task.set_env_variable("AWS_ENDPOINT_URL", settings.s3_endpoint)
            task.set_env_variable("AWS_DEFAULT_REGION", settings.s3_region)
        if settings.s3_secret:
            keys = {"accesskey": "AWS_ACCESS_KEY_ID", "secretkey": "AWS_SECRET_ACCESS_KEY"}
            kubernetes.use_secret_as_env(
                task, secret_name=settings.s3_secret, secret_key_to_env=keys
            )


def target(settings: KfpSettings, *, image: str, workers: int) -> Kfp:
    """Returns the target."""
    return Kfp(settings, image)
