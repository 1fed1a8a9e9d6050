"""The KFP face of deployment: a registered version in, the endpoint out."""

from kfp import dsl
from kfp.dsl import Artifact, Input, Output

from components.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def deploy_model(
    registered: Input[Artifact],
    endpoint: Output[Artifact],
    name: str,
    project: str,
    location: str,
    machine_type: str = "n1-standard-4",
    min_replicas: int = 1,
    max_replicas: int = 1,
    accelerator_type: str = "",
    accelerator_count: int = 0,
    percent: int = 100,
    service_account: str = "",
    labels: dict[str, str] = {},
    kms_key: str = "",
    api_endpoint: str = "",
) -> None:
    """Deploys a version to an endpoint of Vertex AI, for a share of its traffic.

    Args:
        registered: what register_model made.
        endpoint: where it answers.
        name: name of the endpoint, which is made if it is not there.
        project: Google Cloud project.
        location: region, such as europe-west4.
        machine_type: machine that serves it.
        min_replicas: machines at least.
        max_replicas: machines at most.
        accelerator_type: such as NVIDIA_L4; empty: none.
        accelerator_count: accelerators a machine.
        percent: share of the traffic; all if no other model is there.
        service_account: account that it runs as.
        labels: labels of the endpoint.
        kms_key: customer-managed key that protects the endpoint.
        api_endpoint: address of the Vertex AI API; empty: Google's.
    """
    from components.deploy_model import step

    step.run(
        registered,
        endpoint,
        name=name,
        project=project,
        location=location,
        machine_type=machine_type,
        min_replicas=min_replicas,
        max_replicas=max_replicas,
        accelerator_type=accelerator_type,
        accelerator_count=accelerator_count,
        percent=percent,
        service_account=service_account,
        labels=labels,
        kms_key=kms_key,
        api_endpoint=api_endpoint,
    )
