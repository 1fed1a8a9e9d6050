"""Training on a cluster: the step's real client, an API whose pods are containers of the image."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import s3fs
import yaml

from components.steps import whole_numbers
from components.train_model.kubernetes.follow import EXIT_QUEUE_TIMEOUT
from components.train_model.kubernetes.manifest import Plan
from components.train_model.kubernetes.options import JobOptions
from tests.datasets import make_dataset
from tests.docker.engine import CASTELL
from tests.docker.steps import Step
from tests.doubles.kubernetes.cluster import Cluster
from tests.runs import flags, run_main, start, steps_logged, weights
from tests.s3 import BUCKET, KEYS, SETTINGS, client, s3_server
from trainer.data.dataset import Dataset

__all__ = ["start"]

ROOT = Path(__file__).parents[2]
OUTPUT = f"s3://{BUCKET}/run"
CONFIG: dict[str, Any] = {
    "global_batch": 96.0, "hidden": [16.0], "checkpoint_every": 100.0, "log_every": 50.0,
    "heartbeat_timeout_seconds": 3.0, "startup_deadline_seconds": 90.0, "lanes": 12.0,
    # The rate of a step must not follow from how many there are to be.
    "schedule": "constant",
}  # fmt: skip


class Place:
    """A cluster, a store with a data set, and the steps that were started."""

    def __init__(self, directory: Path, cluster: Cluster, url: str) -> None:
        self.directory = directory
        self.cluster = cluster
        self.url = url
        self.store: s3fs.S3FileSystem = client(url)
        self.steps: list[Step] = []
        self.job = Plan(
            image="", data="", output=OUTPUT, task="", workers=1, config={}, options=JobOptions()
        ).name

    def step(self, workers: int = 3, **changes: Any) -> Step:
        port = self.url.rpartition(":")[2]
        kubernetes = {"grace_seconds": 30.0, **changes.pop("kubernetes", {})}
        values: dict[str, Any] = {
            "image": CASTELL, "data": f"s3://{BUCKET}/dataset", "output": OUTPUT,
            "config": CONFIG, "kubernetes": kubernetes, **changes,
        }  # fmt: skip
        pods = {**SETTINGS, **KEYS, "AWS_ENDPOINT_URL": f"http://machine:{port}"}
        self.steps.append(
            Step(self.directory, self.cluster.address, self.url, env=pods, workers=workers,
                 **values)
        )  # fmt: skip
        return self.steps[-1]

    def status(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self.store.cat(f"{BUCKET}/run/status.json")))
        except FileNotFoundError:
            return {"step": 0, "generation": -1}

    def made(self) -> set[str]:
        """What of the Job is left in the cluster."""
        return set(_left(self.cluster, self.job))


def _left(cluster: Cluster, name: str) -> Iterator[str]:
    from kubernetes import client as api
    from kubernetes.client.exceptions import ApiException

    core = api.ApiClient(api.Configuration(host=cluster.address))
    for kind, read in (
        ("job", api.BatchV1Api(core).read_namespaced_job),
        ("service", api.CoreV1Api(core).read_namespaced_service),
        ("policy", api.NetworkingV1Api(core).read_namespaced_network_policy),
    ):
        try:
            read(name, "default")
            yield kind
        except ApiException as error:
            if error.status != 404:
                raise


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    make_dataset(tmp_path / "dataset", rows=6000, shards=12)
    with s3_server("0.0.0.0") as url, Cluster(hosts={"machine": "gateway"}) as cluster:
        made = Place(tmp_path / "steps", cluster, url)
        made.store.put(f"{tmp_path}/dataset/", f"{BUCKET}/dataset/", recursive=True)
        try:
            yield made
        finally:
            for step in made.steps:
                step.end()


@pytest.mark.timeout(400)
def test_workers_that_die_are_cut_off_or_lose_their_node_cost_nothing_but_time(
    place: Place, tmp_path: Path, start: Any
) -> None:
    """The Job's budget is one failure, which is for the kill: nothing else may count."""
    slowly = {**CONFIG, "steps_per_call": 1.0, "checkpoint_every": 50.0}
    wanted: dict[str, Any] = {
        "steps": 1_000_000,
        "config": slowly,
        "kubernetes": {"backoff_limit": 1.0},
    }
    step = place.step(**wanted)

    def trains(generation: int) -> None:
        def met() -> bool:
            found = place.status()
            return found["generation"] == generation and found["state"] == "running"

        place.steps[-1].wait_for(met)
        before = place.status()["step"]
        place.steps[-1].wait_for(lambda: place.status()["step"] > before)

    trains(0)
    place.cluster.faults.kill(place.cluster.running(place.job, 1))
    trains(1)
    assert "left with 138 and starts again" in step.output
    step.send(signal.SIGKILL)  # the step's own pod dies; its second try takes over
    again = place.step(**wanted)
    again.wait_for(lambda: "of an earlier try is still there" in again.output)
    place.cluster.faults.disconnect(place.cluster.running(place.job, 2))
    trains(2)
    place.cluster.faults.disrupt(place.cluster.running(place.job, 0))
    trains(3)
    # Said at the next look, which may come after the workers are at work again.
    again.wait_for(lambda: "rank 0 loses its node" in again.output)
    again.send(signal.SIGTERM)
    again.expect(143)
    place.cluster.wait(lambda: not place.cluster.pods(place.job), 60, "pods to end")
    found = place.status()
    assert (found["state"], found["replicas"]) == ("preempted", 3)
    place.store.get(f"{BUCKET}/run/", f"{tmp_path}/run/", recursive=True)
    steps = found["step"]
    assert steps_logged(tmp_path / "run")[: steps // 50] == list(range(50, steps + 1, 50))
    alone = {k: v for k, v in whole_numbers(CONFIG).items() if k != "hidden"} | {"steps": steps}
    argv = flags(Dataset.open(str(tmp_path / "dataset")), tmp_path / "alone", **alone)
    start(run_main, argv, log=tmp_path / "alone.log").expect(0)
    ours, theirs = (weights(start, tmp_path / name) for name in ("run", "alone"))
    assert np.abs(ours - theirs).max() <= 1e-4


@pytest.mark.timeout(120)
def test_a_cancelled_step_leaves_nothing_in_the_cluster(place: Place) -> None:
    step = place.step(steps=1_000_000)
    for index in range(3):
        place.cluster.running(place.job, index)
    step.send(signal.SIGTERM)
    assert "told to stop (SIGTERM)" in step.expect(143)
    assert place.made() == set()
    place.cluster.wait(lambda: not place.cluster.pods(place.job), 60, "pods to end")


@pytest.mark.timeout(120)
def test_a_mistake_fails_at_once_and_the_step_says_which(place: Place) -> None:
    said = place.step(steps=10, config={**CONFIG, "learning_rat": 1.0}).expect(2)
    assert "ended with exit code 2: rank " in said
    assert "unknown config key 'learning_rat', did you mean 'learning_rate'?" in said
    for index in range(3):
        assert len(place.cluster.pods(place.job, index)) <= 1  # no pod was made again
    # What is left of it gives way to a second try, which does better.
    done = place.step(steps=100)
    assert "of an earlier try gives way to this one" in done.expect(0)
    assert done.metadata["step"] == 100


@pytest.mark.timeout(120)
def test_a_pod_without_a_place_says_so_and_is_given_up_in_time(place: Place) -> None:
    message = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    place.cluster.faults.unschedulable(place.job, 1, message)
    step = place.step(steps=10, kubernetes={"queue_timeout_seconds": 8.0})
    step.wait_for(lambda: message in step.output, timeout=30)
    assert f"waiting  pod {place.job}-1-" in step.output
    said = step.expect(EXIT_QUEUE_TIMEOUT, timeout=60)
    assert "no place for 1 of 3 pods in 8 s (queue_timeout_seconds)" in said
    assert place.made() == set()


@pytest.mark.timeout(120)
def test_an_image_that_is_not_there_is_a_mistake(place: Place) -> None:
    said = place.step(steps=10, image="registry.invalid/castell:nowhere").expect(2, timeout=60)
    assert "ImagePullBackOff: registry.invalid/castell:nowhere" in said
    assert "it can never start" in said
    assert place.made() == set()


@pytest.mark.timeout(120)
def test_want_of_memory_names_the_rank_and_its_limit(place: Place) -> None:
    memory = {"limits": {"memory": "3Gi"}}
    step = place.step(steps=1_000_000, kubernetes={"backoff_limit": 0.0}, resources=memory)
    place.cluster.faults.oom_kill(place.cluster.running(place.job, 2))
    said = step.expect(138, timeout=60)
    assert "rank 2 was killed for want of memory (limit: 3Gi): raise the memory" in said


@pytest.mark.timeout(60)
def test_an_account_without_rights_is_told_which_it_needs(place: Place) -> None:
    place.cluster.denied.add(("create", "jobs"))
    said = place.step(steps=10).expect(2, timeout=40)
    assert "infra/kubernetes/namespace/role.yaml" in said
    assert "Traceback" not in said


def test_the_step_asks_for_nothing_that_its_role_does_not_grant(place: Place) -> None:
    step = place.step(workers=1, steps=20)
    step.expect(0)
    role = yaml.safe_load((ROOT / "infra" / "kubernetes" / "namespace" / "role.yaml").read_text())
    granted = {
        (verb, resource)
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    asked = {_right(method, path) for method, path in place.cluster.requests}
    assert asked <= granted, asked - granted


def _right(method: str, path: str) -> tuple[str, str]:
    """Returns verb and resource of a request, as a role spells them."""
    _, _, rest = path.partition("/namespaces/default/")
    resource, *more = rest.partition("?")[0].split("/")
    named = bool(more)
    resource = "/".join([resource, *more[1:]]) if named else resource
    verbs = {
        "POST": "create", "PATCH": "patch", "DELETE": "delete", "GET": "get" if named else "list",
    }  # fmt: skip
    return verbs[method], resource
