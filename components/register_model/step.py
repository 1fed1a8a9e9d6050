"""Registers a Model artifact and describes the version on another."""

from __future__ import annotations

from components.steps import Artifact, one_line_ends


def run(
    model: Artifact, registered: Artifact, *, name: str, project: str, location: str,
    serving_image: str, parent_model: str, version_aliases: list[str], labels: dict[str, str],
    kms_key: str, api_endpoint: str,
) -> None:  # fmt: skip
    """Makes a version of the model and prints its name."""
    from components.google_cloud import connect
    from components.register_model.register import register

    with one_line_ends():
        version = register(
            connect(project, location, api_endpoint),
            name=name,
            uri=model.uri,
            serving_image=serving_image,
            parent_model=parent_model,
            version_aliases=tuple(version_aliases),
            labels=labels,
            kms_key=kms_key,
            description=_description(model),
        )
    print(f"registered {version.resource_name} version {version.version_id}")
    # What Google's own components put there: the console links it.
    registered.uri = f"https://{location}-aiplatform.googleapis.com/v1/{version.resource_name}"
    registered.metadata.update(
        {"resourceName": version.resource_name, "versionId": version.version_id}
    )


def _description(model: Artifact) -> str:
    """Returns which weights these are."""
    fingerprint, step = (model.metadata.get(k) for k in ("checkpoint_fingerprint", "step"))
    return f"step {step}, checkpoint {fingerprint}" if fingerprint else ""
