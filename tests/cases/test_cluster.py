"""Faults of clusters and start-up that people reported for systems like ours."""

import json
import time
from typing import Any

import pytest

from tests.trainer.cluster.meetings import cluster, members, outcomes
from trainer.cluster.devices import Devices
from trainer.cluster.resolve import resolve
from trainer.cluster.strategy import choose
from trainer.errors import UsageError

WORKERS = {"chief": ["a:2222"], "worker": ["b:2222"]}


def tf_config(cluster: dict[str, list[str]], kind: str, index: Any) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}


@pytest.mark.parametrize("listed", [{}, {"evaluator": ["e:2222"]}])
def test_an_evaluator_is_accepted_listed_or_not_and_never_joins(
    listed: dict[str, list[str]],
) -> None:
    """kubeflow/trainer#1139, #972."""
    spec = resolve(tf_config({**WORKERS, **listed}, "evaluator", 0))
    assert (spec.role, spec.workers) == ("evaluator", ("a:2222", "b:2222"))
    assert choose(spec, "auto", Devices()).name == "one_device"
    worker = resolve(tf_config({**WORKERS, **listed}, "worker", 0))
    assert worker.world_size == 2
    assert choose(worker, "auto", Devices()).replicas == 2


def test_a_string_index_is_accepted_and_another_text_is_named() -> None:
    """TF#34192."""
    assert resolve(tf_config(WORKERS, "worker", "0")).rank == 1
    with pytest.raises(UsageError, match=r'task.index \("one"\)'):
        resolve(tf_config(WORKERS, "worker", "one"))


def test_an_explicit_choice_wins_and_a_contradiction_is_an_error() -> None:
    """TF#36550."""
    environ = tf_config(WORKERS, "worker", 0)
    assert resolve(environ, alone=True).world_size == 1
    with pytest.raises(UsageError, match=r"--workers \(3\) contradicts TF_CONFIG, which names 2"):
        resolve(environ, workers=3)
    with pytest.raises(UsageError, match=r"strategy \(one_device\).*TF_CONFIG names 2 workers"):
        choose(resolve(environ), "one_device", Devices())
    assert choose(resolve(environ, alone=True), "one_device", Devices()).replicas == 1


def test_a_tpu_that_is_not_there_is_one_clear_line() -> None:
    """tensorflow/models#10735; the resolver itself: test_multi_worker."""
    with pytest.raises(UsageError, match=r"strategy \(tpu\): this machine has no TPU"):
        choose(resolve({}), "tpu", Devices())


@pytest.mark.parametrize("absent", [0, 1])
def test_a_worker_that_never_comes_ends_the_wait_with_138_and_its_name(absent: int) -> None:
    """TF#35878, TF#37108, trainer#1156, recommenders#274."""
    specs = cluster(2)
    began = time.monotonic()
    with members() as start:
        ((code, message),) = outcomes([start(specs[1 - absent], deadline_seconds=1)])
    assert code == 138
    assert specs[0].workers[absent] in message
    assert time.monotonic() - began < 5
