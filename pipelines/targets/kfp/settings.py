"""What a Kubeflow Pipelines cluster must be told: section `kfp` of castell.yaml."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from components.train_model.kubernetes.options import JobOptions, Memory, as_text
from pipelines.settings import Section

# A resource and a quantity, as Kubernetes spells them, and a place in an object store.
_RESOURCE = r"^([a-z0-9.-]+/[A-Za-z0-9._-]+)?$"
_CPU = r"^[0-9]+(\.[0-9]+)?m?$"
_PLACE = r"^([a-z0-9]+://[^/\s]+(/.*)?)?$"
# Of one machine; no larger one is made.
MOST_ACCELERATORS = 64


class Toleration(BaseModel):
    """A taint that the workers' pods put up with, as Kubernetes spells it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str | None = None
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str | None = None
    effect: Literal["NoExecute", "NoSchedule", "PreferNoSchedule"] | None = None


class KfpSettings(Section, JobOptions):
    """How to reach the cluster's API, where runs and artifacts go, and what a worker gets."""

    host: str = Field("", description="address of the KFP API, http://… or https://…")
    namespace: str = Field("", description="namespace of the runs; empty: the installation's own")
    pipeline_root: str = Field(
        "", pattern=_PLACE, description="where artifacts go; empty: the cluster's default"
    )
    service_account: str = Field("", description="service account of the steps' pods")
    token: str = Field(
        "", repr=False, description="bearer token of the API; better in the environment"
    )
    verify_tls: bool = Field(True, description="check the API's certificate")
    tls_ca: str = Field("", description="file with the certificate authority of the API")
    experiment: str = Field("castell", description="experiment that the runs belong to")
    console: str = Field("", description="address of the console in links; empty: that of the API")
    cpu: Annotated[str, BeforeValidator(as_text)] = Field(
        "2", pattern=_CPU,
        description="cores that each worker asks for; idle ones may be used, too",
    )  # fmt: skip
    memory: Memory = Field("4Gi", description="memory of each worker")
    accelerator: str = Field(
        "", pattern=_RESOURCE, description="resource name, such as nvidia.com/gpu"
    )
    accelerators: int = Field(
        1, gt=0, le=MOST_ACCELERATORS, description="how many of them each worker gets"
    )
    node_selector: dict[str, str] = Field({}, description="labels of the workers' nodes")
    tolerations: tuple[Toleration, ...] = Field((), description="taints that workers put up with")
    volumes: dict[str, str] = Field({}, description="volume claims of the workers, with the path")
    # The object store that an installation of KFP brings along, with its secret.
    s3_endpoint: str = Field(
        "http://minio-service.kubeflow:9000",
        description="S3 server of artifacts in minio:// or s3://; empty: Amazon's",
    )
    s3_region: str = Field("us-east-1", description="its region; most servers do not mind")
    s3_secret: str = Field(
        "mlpipeline-minio-artifact",
        description="secret with its accesskey and secretkey; empty: by identity, as for gs://",
    )

    def job_options(self) -> dict[str, Any]:
        """Returns the part that the training step itself is told."""
        return {name: getattr(self, name) for name in JobOptions.model_fields}
