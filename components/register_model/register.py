"""A version in the Model Registry: of the model that is named, of one called so, or of none yet."""

from __future__ import annotations

from typing import Any

from components.google_cloud import asking
from trainer.errors import UsageError


def register(
    aiplatform: Any, *, name: str, uri: str, serving_image: str, parent_model: str = "",
    version_aliases: tuple[str, ...] = (), labels: dict[str, str] | None = None, kms_key: str = "",
    description: str = "",
) -> Any:  # fmt: skip
    """Returns the new version, the client's `Model`; it is the default version from now on.

    Raises:
      UsageError: the model is not in gs://, several models have the name, or Vertex refuses it.
    """
    if not uri.startswith("gs://"):
        raise UsageError(f"model {uri}: Vertex AI registers what lies in gs://")
    parent = parent_model or _called(aiplatform, name)
    with asking(parent):
        return aiplatform.Model.upload(
            display_name=name,
            artifact_uri=uri,
            serving_container_image_uri=serving_image,
            parent_model=parent or None,
            version_aliases=list(version_aliases) or None,
            version_description=description or None,
            labels=labels or None,
            encryption_spec_key_name=kms_key or None,
        )


def _called(aiplatform: Any, name: str) -> str:
    """Returns the model that is called so, or an empty text."""
    with asking():
        found = [m.resource_name for m in aiplatform.Model.list(filter=f'display_name="{name}"')]
    if len(found) > 1:
        raise UsageError(
            f"model {name}: {len(found)} models are called so; name one by parent_model: "
            f"{', '.join(found)}"
        )
    return found[0] if found else ""
