"""What Vertex AI must be told: section `vertex` of castell.yaml.

Names, types and units; which of them go together is decided in `limits.py`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipelines.settings import Section

Strategy = Literal["STANDARD", "SPOT", "FLEX_START"]
DiskType = Literal["pd-ssd", "pd-standard", "hyperdisk-balanced"]
REDUCTION_SERVER = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
SERVING = "us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest"
WEEK_HOURS = 168.0
# Nobody means longer, and the API cannot say much longer.
YEAR_HOURS = 8760.0
# Less would be told as no time at all.
MINUTE_HOURS = 1 / 60


class NfsMount(Section):
    """A share that every replica sees under /mnt/nfs/<mount_point>."""

    server: str
    path: str
    mount_point: str


class Fallback(Section):
    """Where training goes if the first choice has no quota; what is left out stays as it was."""

    machine_type: str = ""
    accelerator_type: str = ""
    accelerator_count: int = Field(1, ge=1)
    location: str = ""


class VertexSettings(Section):
    """Where a pipeline runs, on which machines it trains, and where its model goes."""

    # Where
    project: str = Field("", description="project of the runs")
    location: str = Field("us-central1", description="region of the runs")
    pipeline_root: str = Field(
        "", description="where artifacts go, gs://…; empty: a bucket of the project"
    )
    service_account: str = Field("", description="account that the pipeline runs as")
    training_account: str = Field("", description="account of training; empty: service_account")
    serving_account: str = Field("", description="account of serving; empty: Google's own")
    network: str = Field("", description="VPC to peer with: projects/NUMBER/global/networks/NAME")
    reserved_ip_ranges: tuple[str, ...] = Field((), description="ranges of that VPC to stay in")
    psc_attachment: str = Field(
        "", description="network attachment of a Private Service Connect interface, else network"
    )
    kms_key: str = Field("", description="customer-managed key of all that is created")
    labels: dict[str, str] = Field({}, description="labels of runs and training jobs")
    experiment: str = Field("", description="Vertex AI experiment that runs are noted in")
    api_endpoint: str = Field(
        "", description="address of the API; http://… goes without credentials"
    )
    logging_endpoint: str = Field("", description="address of Cloud Logging; empty: Google's")
    # Training
    machine_type: str = Field("n1-standard-8", description="machine of every worker")
    accelerator_type: str = Field("", description="such as NVIDIA_L4; empty: none")
    accelerator_count: int = Field(1, ge=1, description="accelerators a worker")
    tpu_topology: str = Field("", description="of a TPU machine: 1x1, 2x2 or 2x4")
    disk_type: DiskType = Field("pd-ssd", description="boot disk")
    disk_gigabytes: int = Field(100, ge=100, le=64000, description="its size")
    evaluator: bool = Field(
        False, description="a machine that evaluates each checkpoint; a small one holds its place"
    )
    reduction_servers: int = Field(0, ge=0, description="machines that only add gradients (GPU)")
    reduction_server_machine_type: str = Field("n1-highcpu-16", description="their machine")
    reduction_server_image: str = Field(REDUCTION_SERVER, description="their image")
    strategy: Strategy = Field("STANDARD", description="STANDARD, SPOT or FLEX_START")
    max_wait_hours: float = Field(
        24.0, ge=0, le=YEAR_HOURS, description="FLEX_START waits as long; 0: for ever"
    )
    timeout_hours: float = Field(
        WEEK_HOURS, ge=MINUTE_HOURS, le=YEAR_HOURS, description="training is ended after it"
    )
    persistent_resource: str = Field("", description="id of machines that stand by")
    restart_on_worker_restart: bool = Field(
        True, description="restart all workers when one is restarted: they resume together"
    )
    tensorboard: str = Field("", description="TensorBoard that training is shown in")
    base_output_directory: str = Field("", description="gs://… of TensorBoard's logs")
    nfs_mounts: tuple[NfsMount, ...] = Field(
        (), description="shares: [{server: …, path: …, mount_point: …}]"
    )
    fallbacks: tuple[Fallback, ...] = Field(
        (), description="tried in order when there is no quota (--wait): [{location: …}, …]"
    )
    web_access: bool = Field(False, description="allow a shell in training containers")
    # The model
    model: str = Field("", description="name in the Model Registry; empty: not registered")
    parent_model: str = Field("", description="resource name or id of the model it is a version of")
    version_aliases: tuple[str, ...] = Field((), description="aliases of the new version")
    serving_image: str = Field(SERVING, description="container that serves the SavedModel")
    endpoint: str = Field("", description="endpoint that the model is deployed to; empty: none")
    endpoint_machine_type: str = Field("n1-standard-4", description="machine that serves it")
    endpoint_accelerator_type: str = Field("", description="such as NVIDIA_L4; empty: none")
    endpoint_accelerator_count: int = Field(1, ge=1, description="accelerators a machine")
    min_replicas: int = Field(1, ge=1, description="serving machines at least")
    max_replicas: int = Field(1, ge=1, description="serving machines at most")
    traffic_percent: int = Field(
        100, ge=0, le=100, description="traffic of the new model: the canary's share"
    )
