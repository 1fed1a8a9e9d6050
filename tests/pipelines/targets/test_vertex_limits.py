"""What Vertex AI refuses is refused when a pipeline is compiled, with the reason."""

import re
from pathlib import Path
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import AcceleratorType

from pipelines.compile import compile_to
from pipelines.targets.vertex.limits import check
from pipelines.targets.vertex.machines import GPUS
from pipelines.targets.vertex.settings import VertexSettings
from trainer.errors import UsageError

NETWORK = "projects/1/global/networks/shared"
ATTACHMENT = "projects/p/regions/us-central1/networkAttachments/a"
TENSORBOARD = "projects/1/locations/us-central1/tensorboards/2"
GPU = {"machine_type": "g2-standard-8", "accelerator_type": "NVIDIA_L4"}
A100 = {"machine_type": "a2-highgpu-4g", "accelerator_type": "NVIDIA_TESLA_A100"}
NFS = {"server": "10.0.0.1", "path": "/x", "mount_point": "x"}
BOARD = {"tensorboard": TENSORBOARD, "base_output_directory": "gs://b/t"}
TPU = {"machine_type": "ct5lp-hightpu-4t", "tpu_topology": "2x2"}
T4 = {"machine_type": "n1-standard-8", "accelerator_type": "NVIDIA_TESLA_T4"}
SERVED = {"model": "late", "endpoint": "late"}
ACCOUNT = "train@a-project.iam.gserviceaccount.com"


def test_the_accelerators_are_those_of_the_installed_client() -> None:
    assert {gpu for gpus in GPUS.values() for gpu in gpus} <= set(AcceleratorType.__members__)


@pytest.mark.parametrize(
    ("workers", "settings"),
    [
        (1, {}),
        (4, {**GPU, "reduction_servers": 2, "evaluator": True}),
        (2, {**GPU, "strategy": "FLEX_START", "max_wait_hours": 0}),
        (2, {**A100, "accelerator_count": 4}),
        (1, {**TPU, "strategy": "SPOT"}),
        (2, {"network": NETWORK, "reserved_ip_ranges": ("r",), "nfs_mounts": (NFS,)}),
        (2, {"psc_attachment": ATTACHMENT, "persistent_resource": "standby"}),
        (1, {**BOARD, "service_account": "a@b.iam.gserviceaccount.com"}),
        (1, {"model": "late", "version_aliases": ("canary",), "labels": {"team": "a-1"}}),
        (2, {**T4, "accelerator_count": 4}),
        (2, {**GPU, "machine_type": "g2-standard-24", "accelerator_count": 2}),
        (
            1,
            {
                **SERVED, "endpoint_machine_type": "g2-standard-8", "parent_model": "123",
                "endpoint_accelerator_type": "NVIDIA_L4", "serving_account": ACCOUNT,
            },
        ),
        (1, {"fallbacks": ({"location": "europe-west4"}, {"machine_type": "n1-highmem-8"})}),
    ],
)  # fmt: skip
def test_what_vertex_takes_passes(workers: int, settings: dict[str, Any]) -> None:
    check(VertexSettings(**settings), workers)


@pytest.mark.parametrize(
    ("workers", "settings", "says"),
    [
        (1, {"network": NETWORK, "psc_attachment": ATTACHMENT}, "Vertex takes one of them"),
        (1, {"network": "default"}, "must be projects/NUMBER/global/networks/NAME"),
        (1, {"network": "projects/name/global/networks/x"}, "with the number"),
        (1, {"psc_attachment": "A b"}, "networkAttachments"),
        (1, {"reserved_ip_ranges": ("r",)}, "reserved_ip_ranges: needs network"),
        (1, {"machine_type": "ct6e-standard-4t"}, "does not run on TPU v6e; take v5e"),
        (1, {"machine_type": "ct5p-hightpu-4t"}, "the TPU machines of one host"),
        (1, {"machine_type": "ct5lp-hightpu-2t"}, "the TPU machines of one host"),
        (1, {"machine_type": "ct5lp-hightpu-4t"}, "on one host is 2x2"),
        (1, {**TPU, "tpu_topology": "4x4"}, "several hosts is not supported"),
        (2, TPU, "trains with one worker"),
        (1, {**TPU, "accelerator_type": "NVIDIA_L4"}, "brings its TPU along"),
        (1, {"tpu_topology": "2x2"}, "has no TPU"),
        (1, {"accelerator_type": "NVIDIA_L5"}, "did you mean 'NVIDIA_L4'?"),
        (1, {"accelerator_type": "NVIDIA_L4"}, "machine_type n1-standard-8 takes NVIDIA_TESLA_T4"),
        (1, {**GPU, "machine_type": "e2-standard-8"}, "takes no accelerator"),
        (
            1,
            A100,
            "accelerator_count (1): a2-highgpu-4g has 4",
        ),
        (1, {"evaluator": True}, "evaluator: needs at least 2 workers"),
        (2, {"reduction_servers": 1}, "needs accelerator_type"),
        (1, {**GPU, "reduction_servers": 1}, "at least 2 workers"),
        (1, {"persistent_resource": "x", "strategy": "SPOT"}, "its machines are there already"),
        (1, {"strategy": "FLEX_START"}, "not for a machine without one"),
        (2, {**GPU, "strategy": "FLEX_START", "evaluator": True}, "one machine for all pools"),
        (1, {**GPU, "strategy": "FLEX_START", "timeout_hours": 200}, "FLEX_START allows 168"),
        (1, {"tensorboard": TENSORBOARD}, "tensorboard: needs service_account"),
        (1, {"tensorboard": "mine"}, "must be projects/PROJECT/locations"),
        (1, {"kms_key": "mine"}, "must be projects/PROJECT/locations/REGION/keyRings"),
        (
            1,
            {"kms_key": "projects/p/locations/global/keyRings/r/cryptoKeys/k"},
            "lies in global, the runs in us-central1",
        ),
        (1, {"pipeline_root": "s3://b"}, "pipeline_root (s3://b): must be gs://"),
        (1, {"labels": {"Team": "a"}}, "lower-case letters"),
        (1, {"labels": {f"l{i}": "" for i in range(65)}}, "65 of them"),
        (1, {"version_aliases": ("1",), "model": "m"}, "must begin with a small letter"),
        (1, {"parent_model": "123"}, "parent_model: needs model"),
        (1, {"machine_type": ""}, "machine_type (): no machine type"),
        (1, {"machine_type": "n1-standard"}, "machine_type (n1-standard): no machine type"),
        (1, {"machine_type": " n1-standard-8"}, "machine_type ( n1-standard-8): no machine type"),
        (1, {"machine_type": "g2-standard-9"}, "g2-standard has the sizes 4, 8"),
        (1, {**GPU, "accelerator_count": 2}, "accelerator_count (2): g2-standard-8 has 1"),
        (1, {**T4, "accelerator_count": 3}, "n1-standard-8 may have 1, 2, 4"),
        (1, {**T4, "accelerator_count": 999}, "accelerator_count (999)"),
        (
            2,
            {**GPU, "reduction_servers": 1, "reduction_server_machine_type": ""},
            "reduction_server_machine_type (): no machine type",
        ),
        (
            2,
            {**GPU, "reduction_servers": 1, "reduction_server_image": ""},
            "reduction_server_image (): no image reference",
        ),
        (1, {"service_account": "me"}, "service_account (me): must be a service account's email"),
        (1, {"training_account": "me@gmail.com"}, "training_account (me@gmail.com): must be"),
        (1, {"serving_account": "no one"}, "serving_account (no one): must be"),
        (1, {"location": ""}, "location (): must be a region"),
        (1, {"location": "europe"}, "location (europe): must be a region"),
        (1, {"project": "my project"}, "project (my project): must be"),
        (1, {"pipeline_root": "gs://"}, "pipeline_root (gs://): must be gs://BUCKET"),
        (1, {"base_output_directory": "gs:///x"}, "base_output_directory (gs:///x): must be"),
        (1, {"persistent_resource": "Two words"}, "persistent_resource (Two words): must be"),
        (1, {"experiment": "Two words"}, "experiment (Two words): must be"),
        (1, {"network": NETWORK, "nfs_mounts": ({**NFS, "server": ""},)}, "server (): must be"),
        (1, {"network": NETWORK, "nfs_mounts": ({**NFS, "mount_point": ""},)}, "mount_point ()"),
        (1, {"max_wait_hours": 0.0001}, "max_wait_hours (0.0001): must be a minute at least"),
        (
            1,
            {**BOARD, "service_account": ACCOUNT, "location": "europe-west4"},
            "lies in us-central1, the runs in europe-west4",
        ),
        (
            1,
            {"psc_attachment": ATTACHMENT, "location": "europe-west4"},
            "lies in us-central1, the runs in europe-west4",
        ),
        (1, {**SERVED, "endpoint_accelerator_type": "NVIDIA_L4"}, "takes NVIDIA_TESLA_T4"),
        (1, {**SERVED, "endpoint_accelerator_type": "L4"}, "endpoint_accelerator_type (L4): unkn"),
        (1, {**SERVED, "endpoint_machine_type": "big"}, "endpoint_machine_type (big): no machine"),
        (1, {**SERVED, "serving_image": ""}, "serving_image (): no image reference"),
        (1, {**SERVED, "serving_image": "A b"}, "serving_image (A b): no image reference"),
        (1, {"model": "x" * 129}, "must be a name of 128 letters at most"),
        (1, {"model": "a\nb"}, "model ('a\\nb'): must be a name"),
        (1, {"model": " "}, "model (' '): must be a name"),
        (1, {"model": "late", "parent_model": "a b"}, "parent_model (a b): must be a model's id"),
        (
            1,
            {"model": "late", "parent_model": "projects/p/locations/europe-west4/models/1"},
            "lies in europe-west4, the runs in us-central1",
        ),
        (1, {"fallbacks": ({},)}, "fallbacks, number 1: says nothing else"),
        (1, {"fallbacks": ({"location": ""},)}, "fallbacks, number 1: location (): must be"),
        (
            1,
            {"fallbacks": ({"location": "asia-east1"}, {"machine_type": "e2"})},
            "fallbacks, number 2: machine_type (e2): no machine type",
        ),
        (
            1,
            {**T4, "fallbacks": ({"accelerator_type": "NVIDIA_L4"},)},
            "fallbacks, number 1: accelerator_type (NVIDIA_L4): machine_type n1-standard-8 takes",
        ),
    ],
)  # fmt: skip
def test_what_vertex_refuses_is_told_first(
    workers: int, settings: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(says)) as raised:
        check(VertexSettings(**settings), workers)
    assert "\n" not in str(raised.value)


def test_nothing_is_written_then(tmp_path: Path) -> None:
    flags = {"machine_type": "ct6e-standard-4t"}
    with pytest.raises(UsageError, match="v6e"):
        compile_to(str(tmp_path / "x.yaml"), "train_evaluate_export", target="vertex", flags=flags)
    assert not list(tmp_path.iterdir())
