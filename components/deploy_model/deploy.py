"""An endpoint of Vertex AI: made if it is not there, given a version, its traffic shifted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from components.deploy_model.traffic import with_share
from components.google_cloud import asking
from trainer.errors import UsageError

# How Vertex calls a model that is being deployed.
NEW = "0"


@dataclass(frozen=True)
class Machines:
    """What serves a model: between `least` and `most` machines of a type."""

    type: str
    least: int
    most: int
    accelerator_type: str = ""
    accelerator_count: int = 0


def endpoint_called(aiplatform: Any, name: str) -> Any | None:
    """Returns the endpoint of that display name, None if there is none.

    Raises:
      UsageError: several have it.
    """
    with asking():
        found = aiplatform.Endpoint.list(filter=f'display_name="{name}"')
    if len(found) > 1:
        raise UsageError(f"endpoint {name}: {len(found)} endpoints are called so; rename others")
    return found[0] if found else None


def deploy(
    aiplatform: Any, version: str, *, endpoint: str, machines: Machines, percent: int = 100,
    service_account: str = "", labels: dict[str, str] | None = None, kms_key: str = "",
) -> Any:  # fmt: skip
    """Deploys `version` (`projects/…/models/…@2`) and returns the endpoint.

    It gets `percent` of the traffic, all of it if it is alone; the others keep their proportions.
    If Vertex cannot bring it up, traffic stays as it was.
    """
    place = endpoint_called(aiplatform, endpoint)
    with asking(version):
        if place is None:
            place = aiplatform.Endpoint.create(
                display_name=endpoint,
                labels=labels or None,
                encryption_spec_key_name=kms_key or None,
            )
        place.deploy(
            aiplatform.Model(version),
            traffic_split=with_share(place.traffic_split, NEW, percent),
            machine_type=machines.type,
            min_replica_count=machines.least,
            max_replica_count=machines.most,
            accelerator_type=machines.accelerator_type or None,
            accelerator_count=machines.accelerator_count or None,
            service_account=service_account or None,
        )
    return place


def shift(place: Any, percent: int, *, undeploy_idle: bool = False) -> dict[str, int]:
    """Gives the newest deployed model `percent` of the traffic and returns the shares.

    0 is the rollback: what was there before takes all again. `undeploy_idle` then takes models
    without traffic off their machines.

    Raises:
      UsageError: there is nothing to share with.
    """
    with asking():
        models = sorted(place.list_models(), key=lambda m: (str(m.create_time), m.id))
    if not models:
        raise UsageError(f"endpoint {place.display_name}: no model is deployed there")
    newest = models[-1].id
    if len(models) == 1 and percent < 100:
        raise UsageError(
            f"endpoint {place.display_name}: {newest} is its only model; it keeps all traffic"
        )
    before = {model.id: place.traffic_split.get(model.id, 0) for model in models}
    shares = with_share(before, newest, percent, heir=models[-2].id if len(models) > 1 else "")
    with asking():
        place.update(traffic_split=shares)
        if undeploy_idle:
            for name in [name for name, share in shares.items() if not share]:
                place.undeploy(deployed_model_id=name)
                del shares[name]
    return shares
