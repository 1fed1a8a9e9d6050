"""What follows the export on Vertex AI: a version in the registry, an endpoint that serves it."""

from __future__ import annotations

from typing import Any

from pipelines.targets.vertex.settings import VertexSettings

# The platform puts in where the pipeline runs.
PROJECT = "{{$.pipeline_google_cloud_project_id}}"
LOCATION = "{{$.pipeline_google_cloud_location}}"


def release(model: Any, settings: VertexSettings, image: str) -> None:
    """Adds the steps to the pipeline that is being built."""
    if not settings.model:
        return
    from components.deploy_model.component import deploy_model
    from components.image import with_image
    from components.register_model.component import register_model

    place: dict[str, Any] = {
        "project": PROJECT,
        "location": LOCATION,
        "labels": settings.labels,
        "kms_key": settings.kms_key,
        "api_endpoint": settings.api_endpoint,
    }
    registered = with_image(register_model, image)(
        model=model,
        name=settings.model,
        serving_image=settings.serving_image,
        parent_model=settings.parent_model,
        version_aliases=list(settings.version_aliases),
        **place,
    ).set_display_name("Register")
    if not settings.endpoint:
        return
    accelerators = settings.endpoint_accelerator_count if settings.endpoint_accelerator_type else 0
    with_image(deploy_model, image)(
        registered=registered.outputs["registered"],
        name=settings.endpoint,
        machine_type=settings.endpoint_machine_type,
        min_replicas=settings.min_replicas,
        max_replicas=settings.max_replicas,
        accelerator_type=settings.endpoint_accelerator_type,
        accelerator_count=accelerators,
        percent=settings.traffic_percent,
        service_account=settings.serving_account,
        **place,
    ).set_display_name("Deploy").set_caching_options(False)
