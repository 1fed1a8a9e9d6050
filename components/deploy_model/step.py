"""Deploys the version that an artifact names and describes the endpoint on another."""

from __future__ import annotations

from components.steps import Artifact, one_line_ends


def run(
    registered: Artifact, endpoint: Artifact, *, name: str, project: str, location: str,
    machine_type: str, min_replicas: int, max_replicas: int, accelerator_type: str,
    accelerator_count: int, percent: int, service_account: str, labels: dict[str, str],
    kms_key: str, api_endpoint: str,
) -> None:  # fmt: skip
    """Deploys and prints the shares of the endpoint's traffic."""
    from components.deploy_model.deploy import Machines, deploy
    from components.google_cloud import connect

    metadata = registered.metadata
    with one_line_ends():
        place = deploy(
            connect(project, location, api_endpoint),
            f"{metadata['resourceName']}@{metadata['versionId']}",
            endpoint=name,
            machines=Machines(
                machine_type, min_replicas, max_replicas, accelerator_type, accelerator_count
            ),
            percent=percent,
            service_account=service_account,
            labels=labels,
            kms_key=kms_key,
        )
    print(f"deployed to {place.resource_name}: {place.traffic_split}")
    endpoint.uri = f"https://{location}-aiplatform.googleapis.com/v1/{place.resource_name}"
    endpoint.metadata.update(
        {"resourceName": place.resource_name, "trafficSplit": dict(place.traffic_split)}
    )
