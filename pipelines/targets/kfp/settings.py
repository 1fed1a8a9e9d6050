"""What a Kubeflow Pipelines cluster must be told: section `kfp` of castell.yaml."""

from __future__ import annotations

from pydantic import Field

from pipelines.settings import Section


class KfpSettings(Section):
    """How to reach the cluster's API, and where its runs and artifacts go."""

    host: str = Field("", description="address of the KFP API, http://… or https://…")
    namespace: str = Field("", description="namespace of the runs; empty: the installation's own")
    pipeline_root: str = Field("", description="where artifacts go; empty: the cluster's default")
    service_account: str = Field("", description="service account of the steps' pods")
    token: str = Field("", description="bearer token of the API; better in the environment")
    verify_tls: bool = Field(True, description="check the API's certificate")
    tls_ca: str = Field("", description="file with the certificate authority of the API")
    experiment: str = Field("castell", description="experiment that the runs belong to")
    console: str = Field("", description="address of the console in links; empty: that of the API")
