"""The KFP face of registration: Model (the SavedModel) in, its version in the registry out."""

from kfp import dsl
from kfp.dsl import Artifact, Input, Model, Output

from components.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def register_model(
    model: Input[Model],
    registered: Output[Artifact],
    name: str,
    project: str,
    location: str,
    serving_image: str,
    parent_model: str = "",
    version_aliases: list[str] = [],
    labels: dict[str, str] = {},
    kms_key: str = "",
    api_endpoint: str = "",
) -> None:
    """Registers an exported model with Vertex AI: a new version of the model of that name.

    Args:
        model: what export_model made; must lie in gs://.
        registered: the version in the Model Registry.
        name: name of the model.
        project: Google Cloud project.
        location: region, such as europe-west4.
        serving_image: container that serves it.
        parent_model: model that gets a new version; empty: the one called `name`, or a new one.
        version_aliases: aliases that the version gets, such as canary.
        labels: labels of the model.
        kms_key: customer-managed key that protects it.
        api_endpoint: address of the Vertex AI API; empty: Google's.
    """
    from components.register_model import step

    step.run(
        model,
        registered,
        name=name,
        project=project,
        location=location,
        serving_image=serving_image,
        parent_model=parent_model,
        version_aliases=version_aliases,
        labels=labels,
        kms_key=kms_key,
        api_endpoint=api_endpoint,
    )
