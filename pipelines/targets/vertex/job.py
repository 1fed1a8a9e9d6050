"""The training step as a CustomJob: Google's component around ours, with our worker pools.

Each replica runs train_model with one worker: the trainer finds the others in CLUSTER_SPEC. Worker
pools are constants of the YAML, since the platform expands no parameter inside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.targets.vertex.pools import worker_pools
from pipelines.targets.vertex.release import release
from pipelines.targets.vertex.settings import VertexSettings

_HOUR_SECONDS = 3600


@dataclass(frozen=True)
class Vertex:
    """The target; the number of workers stands in the YAML."""

    settings: VertexSettings
    image: str
    fixed_workers: int

    def train(self, component: Any, inputs: Mapping[str, Any]) -> Any:
        """Returns the task of the training job."""
        return custom_job(component, self.settings, self.fixed_workers)(**{**inputs, "workers": 1})

    def reach(self, task: Any) -> None:
        """Every step has the pipeline's own account."""

    def release(self, model: Any) -> None:
        """Registers and deploys the model, if the settings name it and an endpoint."""
        release(model, self.settings, self.image)


def custom_job(component: Any, settings: VertexSettings, workers: int) -> Any:
    """Returns a component with the interface of `component` that launches a CustomJob."""
    from google_cloud_pipeline_components.v1.custom_job import (
        create_custom_training_job_from_component,
    )

    # Left out, it is the pipeline's own.
    persistent = settings.persistent_resource
    optional = {"persistent_resource_id": persistent} if persistent else {}
    psc = {"network_attachment": settings.psc_attachment} if settings.psc_attachment else {}
    made = create_custom_training_job_from_component(
        component,
        machine_type=settings.machine_type,
        accelerator_type=settings.accelerator_type,
        accelerator_count=settings.accelerator_count,
        boot_disk_type=settings.disk_type,
        boot_disk_size_gb=settings.disk_gigabytes,
        timeout=_seconds(settings.timeout_hours),
        restart_job_on_worker_restart=settings.restart_on_worker_restart,
        service_account=settings.training_account or settings.service_account,
        network=settings.network,
        reserved_ip_ranges=list(settings.reserved_ip_ranges),
        psc_interface_config=psc,
        encryption_spec_key_name=settings.kms_key,
        tensorboard=settings.tensorboard,
        enable_web_access=settings.web_access,
        nfs_mounts=[mount.model_dump() for mount in settings.nfs_mounts],
        base_output_directory=settings.base_output_directory,
        labels=settings.labels,
        strategy=settings.strategy,
        max_wait_duration=_seconds(settings.max_wait_hours),
        **optional,
    )
    return _with_pools(made, settings, workers)


def _with_pools(component: Any, settings: VertexSettings, workers: int) -> Any:
    """Returns the component with the pools that Google's function has no words for."""
    import yaml
    from google.protobuf import json_format
    from kfp import components

    document = json_format.MessageToDict(component.pipeline_spec)
    pools: Any = None
    for part in (*document["components"].values(), document["root"]):
        declared = part["inputDefinitions"]["parameters"]["worker_pool_specs"]
        pools = pools or worker_pools(declared["defaultValue"][0], settings, workers)
        declared["defaultValue"] = pools
    changed = components.load_component_from_text(yaml.safe_dump(document))
    # What a task is called by; the text names Google's component.
    changed.component_spec.name = component.component_spec.name
    return changed


def _seconds(hours: float) -> str:
    return f"{round(hours * _HOUR_SECONDS)}s"
