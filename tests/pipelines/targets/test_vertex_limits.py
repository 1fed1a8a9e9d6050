"""What Vertex AI refuses is refused when a pipeline is compiled, with the reason."""

import re
from pathlib import Path
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import AcceleratorType

from pipelines.compile import compile_to
from pipelines.targets.vertex.limits import GPUS, check
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
        (1, {**BOARD, "service_account": "a@b"}),
        (1, {"model": "late", "version_aliases": ("canary",), "labels": {"team": "a-1"}}),
    ],
)
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
    ],
)
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
