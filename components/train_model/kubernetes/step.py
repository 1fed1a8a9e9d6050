"""Trains in pods of the cluster and says on the Model artifact what came out."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kubernetes.client.exceptions import ApiException

from components.steps import Artifact, one_line_ends, whole_numbers
from components.train_model.kubernetes import look
from components.train_model.kubernetes.cluster import Cluster
from components.train_model.kubernetes.follow import POLL_SECONDS, Follower, QueueTimeout
from components.train_model.kubernetes.manifest import Owner, Plan
from components.train_model.kubernetes.options import JobOptions
from components.train_model.launch import TrainingEnded
from components.train_model.step import lengths, outcome
from trainer.errors import CastellError, PeerLost, Stopped, UsageError

# Beyond the pods' own time to stop.
_REMOVAL_SECONDS = 60


def run(
    dataset: Artifact, run: Artifact, task_config: Any, *, image: str, task: str, workers: int,
    steps: int, epochs: float, config: dict[str, Any], kubernetes: Mapping[str, Any],
) -> None:  # fmt: skip
    """Trains; a second try of the same step takes over what the first one has started."""
    with one_line_ends():
        if workers < 1:
            raise UsageError(f"workers ({workers}): must be at least 1")
        keys = {**whole_numbers(config), **lengths(steps, epochs)}
        plan = Plan(
            image=image,
            # A volume that all pods mount may hold a copy of the data, which is nearer.
            data=keys.pop("data", None) or for_pods(dataset.uri),
            output=for_pods(run.uri),
            task=task,
            workers=workers,
            config=keys,
            options=JobOptions(**whole_numbers(dict(kubernetes))),
            owner=_owner(os.environ),
            **_forwarded(task_config),
        )
        train(Cluster(), plan)
        # What the launcher would upload: the workers have written it to its place already.
        os.makedirs(run.path, exist_ok=True)
        run.metadata.update(outcome(plan.output))
        run.metadata["dataset_fingerprint"] = dataset.metadata.get("fingerprint", "")


def train(cluster: Cluster, plan: Plan) -> None:
    """Runs the Job to its end; nothing of it is left when it is cancelled or can never run.

    A step that only loses sight of the Job leaves it: another try takes it over.
    """
    try:
        if _begin(cluster, plan):
            Follower(cluster, plan, _say).run()
    except (Stopped, KeyboardInterrupt, QueueTimeout, UsageError) as error:
        with _undisturbed():
            _remove(cluster, plan, error)
        raise
    except TrainingEnded:
        cluster.delete(plan, job=False)
        raise
    # The Job stays for a while, to be looked at; a failed one gives way to the next try.
    cluster.delete(plan, job=False)


def _remove(cluster: Cluster, plan: Plan, why: BaseException) -> None:
    """Deletes what is the plan's; if that fails, the first error is still the one that counts."""
    try:
        job = cluster.job(plan)
        if job is None or cluster.is_made_here(job):
            cluster.delete(plan)
    except (CastellError, ApiException) as error:
        _say(f"castell: warning: Job {plan.name} could not be deleted ({error}) after: {why}")


@contextmanager
def _undisturbed() -> Iterator[None]:
    """A second SIGTERM would leave half of it; a platform that is tired of waiting kills."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def for_pods(uri: str) -> str:
    """Returns the URI as every pod can use it.

    Raises:
      UsageError: it is a place that pods do not share.
    """
    uri = re.sub(r"^minio://", "s3://", uri)
    if not uri.startswith(("gs://", "s3://")):
        raise UsageError(
            f"{uri}: the pods of a training share no disk: let the pipeline root be gs://…, s3://… "
            "or minio://…"
        )
    return uri.partition("?")[0]


def _begin(cluster: Cluster, plan: Plan) -> bool:
    """Makes the Job or takes over the one that is there; False if that one is done already."""
    if cluster.create(plan):
        _say(f"Job {plan.name} in namespace {cluster.namespace}: {plan.workers} pods")
        return True
    job = cluster.job(plan)
    verdict = look.verdict(job) if job else None
    same = job is not None and cluster.is_of(job, plan)
    if same and verdict is None:
        _say(f"Job {plan.name} of an earlier try is still there: this one goes on with it")
        cluster.take_over(plan)
        return True
    if same and verdict and verdict[0] == "Complete":
        _say(f"Job {plan.name} of an earlier try is done")
        return False
    _say(f"Job {plan.name} of an earlier try gives way to this one")
    cluster.delete(plan)
    deadline = time.monotonic() + plan.options.grace_seconds + _REMOVAL_SECONDS
    while cluster.job(plan) or cluster.pods(plan):
        if time.monotonic() > deadline:
            raise PeerLost(f"pods of Job {plan.name} do not end; try again when they have")
        time.sleep(POLL_SECONDS)
    cluster.create(plan)
    return True


def _forwarded(task_config: Any) -> dict[str, Any]:
    """Returns what was set on the task, as parts of the plan."""
    names = (
        "env", "resources", "tolerations", "node_selector", "affinity", "volumes", "volume_mounts",
    )  # fmt: skip
    given = {name: getattr(task_config, name, None) for name in names}
    return {name: whole_numbers(value) for name, value in given.items() if value}


def _owner(environ: Mapping[str, str]) -> Owner | None:
    name, uid = environ.get("KFP_POD_NAME"), environ.get("KFP_POD_UID")
    return Owner("v1", "Pod", name, uid) if name and uid else None


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
