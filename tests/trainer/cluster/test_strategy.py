from typing import Any

import pytest

from trainer.cluster.devices import Devices, gpu_names, has_tpu
from trainer.cluster.spec import ClusterSpec
from trainer.cluster.strategy import choose
from trainer.errors import UsageError

ALONE = ClusterSpec()
ONE = ClusterSpec(workers=("a:1",), source="TF_CONFIG")
TWO = ClusterSpec("worker", 1, ("a:1", "b:1"), "TF_CONFIG")
LOCAL = ClusterSpec(workers=("127.0.0.1:0",) * 2, source="--workers")
EVALUATOR = ClusterSpec("evaluator", 0, ("a:1", "b:1"), "TF_CONFIG")


@pytest.mark.parametrize(
    ("spec", "requested", "devices", "cpu_replicas", "expected"),
    [
        (ALONE, "auto", Devices(), 1, ("one_device", 1, 1, "CPU")),
        (ALONE, "auto", Devices(1), 1, ("one_device", 1, 1, "GPU")),
        (ALONE, "auto", Devices(4), 1, ("mirrored", 4, 4, "GPU")),
        (ALONE, "auto", Devices(), 2, ("mirrored", 2, 2, "CPU")),
        (ALONE, "auto", Devices(4), 2, ("mirrored", 2, 2, "CPU")),
        (ALONE, "mirrored", Devices(), 1, ("mirrored", 1, 1, "CPU")),
        (ALONE, "one_device", Devices(4), 1, ("one_device", 1, 1, "GPU")),
        (ALONE, "auto", Devices(0, tpu=True), 1, ("tpu", 0, 0, "TPU")),
        (ALONE, "one_device", Devices(0, tpu=True), 1, ("one_device", 1, 1, "CPU")),
        (ONE, "auto", Devices(), 1, ("one_device", 1, 1, "CPU")),
        (ONE, "multi_worker", Devices(), 1, ("multi_worker", 1, 1, "CPU")),
        (TWO, "auto", Devices(), 1, ("multi_worker", 2, 1, "CPU")),
        (TWO, "multi_worker", Devices(2), 1, ("multi_worker", 4, 2, "GPU")),
        (LOCAL, "auto", Devices(4), 1, ("multi_worker", 4, 2, "GPU")),
        (LOCAL, "auto", Devices(1), 1, ("multi_worker", 2, 1, "CPU")),
        (EVALUATOR, "auto", Devices(), 1, ("one_device", 1, 1, "CPU")),
        (EVALUATOR, "multi_worker", Devices(2), 1, ("mirrored", 2, 2, "GPU")),
    ],
)
def test_the_strategy_follows_cluster_devices_and_wish(
    spec: ClusterSpec, requested: str, devices: Devices, cpu_replicas: int, expected: Any
) -> None:
    choice = choose(spec, requested, devices, cpu_replicas)
    assert (choice.name, choice.replicas, choice.local_replicas, choice.device) == expected
    assert choice.reason


@pytest.mark.parametrize(
    ("spec", "requested", "devices", "cpu_replicas", "words"),
    [
        (TWO, "one_device", Devices(), 1, "names 2 workers"),
        (TWO, "mirrored", Devices(2), 1, "names 2 workers"),
        (TWO, "tpu", Devices(0, tpu=True), 1, "one host only"),
        (TWO, "auto", Devices(0, tpu=True), 1, "one host only"),
        (TWO, "auto", Devices(), 2, "cpu_replicas (2)"),
        (ALONE, "multi_worker", Devices(), 1, "no cluster is named"),
        (ALONE, "one_device", Devices(), 2, "contradicts cpu_replicas (2)"),
        (ALONE, "tpu", Devices(), 1, "has no TPU"),
    ],
)
def test_a_wish_that_contradicts_the_cluster_is_an_error(
    spec: ClusterSpec, requested: str, devices: Devices, cpu_replicas: int, words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        choose(spec, requested, devices, cpu_replicas)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_tpu_signs_are_read_from_the_environment_that_is_passed() -> None:
    assert has_tpu({"TPU_WORKER_ID": "0"})
    assert not has_tpu({"TPU_WORKER_ID": ""})
    assert gpu_names({"CUDA_VISIBLE_DEVICES": "-1"}) == []
