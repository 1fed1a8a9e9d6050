"""The Kubernetes API as the training step uses it, through the official client.

The rights that this takes stand in infra/kubernetes/namespace/role.yaml; nothing more is asked for.

Every method raises UsageError where this account may not, or the API refuses what it gets.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from components.train_model.kubernetes.manifest import CONTAINER, CONTENT, LABEL, Owner, Plan
from trainer.again import TRIES, again
from trainer.errors import PeerLost, UsageError

_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_GONE, _TAKEN, _FORBIDDEN = 404, 409, 403
_RIGHTS = (
    ": give the step's service account the rights of infra/kubernetes/namespace/role.yaml, or name "
    "one that has them (service_account)"
)
# What an API server that is busy, restarting or out of reach answers.
# A token is renewed now and then.
_BUSY = (401, 429, 500, 502, 503, 504)
# Some minutes: a control plane is upgraded.
_PATIENT_TRIES = 40
# Seconds to connect, and between two bytes of an answer.
_TIMEOUT = (10, 60)


class Cluster:
    """One namespace of a cluster: this pod's own, or the one that the client's configuration says.

    Raises:
      UsageError: no cluster is configured here.
    """

    def __init__(self) -> None:
        try:
            config.load_config()
        except (config.ConfigException, OSError, TypeError) as error:
            raise UsageError(
                f"no Kubernetes cluster is configured here ({error}): this step runs in a pod of "
                "one, or needs KUBECONFIG"
            ) from None
        self.namespace = _namespace()
        self._api = client.ApiClient()
        self._core = client.CoreV1Api(self._api)
        self._batch = client.BatchV1Api(self._api)
        self._network = client.NetworkingV1Api(self._api)

    def create(self, plan: Plan) -> bool:
        """Makes what `plan` needs; returns whether the Job was not there before.

        Service and policy belong to the Job, and go with it, whatever becomes of this step.
        """
        new = self._make(self._batch.create_namespaced_job, plan.job())
        if new is not None:
            owner = Owner("batch/v1", "Job", plan.name, new["metadata"]["uid"])
            self._make(self._core.create_namespaced_service, plan.service(owner))
            self._make(self._network.create_namespaced_network_policy, plan.network_policy(owner))
        return new is not None

    def take_over(self, plan: Plan) -> None:
        """Makes this step's pod the owner of a Job that an earlier try has made."""
        metadata = {"ownerReferences": plan.job()["metadata"].get("ownerReferences", [])}
        self._asked(
            lambda: self._batch.patch_namespaced_job(
                plan.name, self.namespace, {"metadata": metadata}, _request_timeout=_TIMEOUT
            )
        )

    def job(self, plan: Plan) -> dict[str, Any] | None:
        """Returns the Job, None if there is none (any more)."""
        try:
            return self._asked(
                lambda: self._batch.read_namespaced_job(
                    plan.name, self.namespace, _request_timeout=_TIMEOUT
                )
            )
        except ApiException as error:
            if error.status == _GONE:
                return None
            raise

    def is_made_here(self, job: Mapping[str, Any]) -> bool:
        """Whether a step like this one has made the Job."""
        return CONTENT in (job["metadata"].get("annotations") or {})

    def is_of(self, job: Mapping[str, Any], plan: Plan) -> bool:
        """Whether a Job was made from the same plan.

        Raises:
          UsageError: it was not made by this step at all.
        """
        if not self.is_made_here(job):
            raise UsageError(
                f"Job {plan.name} in namespace {self.namespace} is somebody else's: delete it, or "
                "give this run another output"
            )
        made, wanted = (each["metadata"]["annotations"][CONTENT] for each in (job, plan.job()))
        return bool(made == wanted)

    def pods(self, plan: Plan) -> list[dict[str, Any]]:
        """Returns all pods of the Job, those of earlier tries included, the oldest first."""
        found = self._asked(
            lambda: self._core.list_namespaced_pod(
                self.namespace, label_selector=f"{LABEL}={plan.name}", _request_timeout=_TIMEOUT
            )
        )
        return sorted(found["items"] or [], key=lambda pod: pod["metadata"]["creationTimestamp"])

    def last_event(self, name: str) -> str:
        """Returns the newest warning about a Job or a pod; empty if there is none."""
        found = self._asked(
            lambda: self._core.list_namespaced_event(
                self.namespace, field_selector=f"involvedObject.name={name}",
                _request_timeout=_TIMEOUT,
            )
        )  # fmt: skip
        warnings = [event for event in found["items"] or [] if event.get("type") != "Normal"]
        warnings.sort(key=lambda event: event.get("lastTimestamp") or event.get("eventTime") or "")
        return f"{warnings[-1]['reason']}: {warnings[-1]['message']}" if warnings else ""

    def log(self, pod: str, *, tail: int | None = None) -> Iterator[str]:
        """Yields a pod's lines; without `tail` as they come, until it ends or the stream breaks."""
        with contextlib.suppress(ApiException, HTTPError):
            answer = self._core.read_namespaced_pod_log(
                pod, self.namespace, container=CONTAINER, follow=tail is None,
                _preload_content=False, _request_timeout=_TIMEOUT,
                **({"tail_lines": tail} if tail else {}),
            )  # fmt: skip
            held: list[bytes] = []
            for part in answer.stream():
                first, *others = part.split(b"\n")
                held.append(first)
                for line in others:
                    yield b"".join(held).decode("utf-8", "replace")
                    held = [line]
            if last := b"".join(held):
                yield last.decode("utf-8", "replace")

    def delete(self, plan: Plan, *, job: bool = True) -> None:
        """Removes what was made, the pods with it; what is gone already is no trouble."""
        removals: list[Callable[..., Any]] = [
            self._core.delete_namespaced_service,
            self._network.delete_namespaced_network_policy,
        ]
        if job:
            removals.insert(0, self._batch.delete_namespaced_job)
        for remove in removals:
            self._remove(remove, plan.name)

    def _remove(self, remove: Callable[..., Any], name: str) -> None:
        try:
            self._asked(
                lambda: remove(
                    name, self.namespace, propagation_policy="Background", _request_timeout=_TIMEOUT
                ),
                tries=TRIES,
            )
        except ApiException as error:
            if error.status != _GONE:
                raise

    def _make(self, create: Callable[..., Any], body: dict[str, Any]) -> dict[str, Any] | None:
        """Returns what was made; None if something of that name is there."""
        try:
            made: dict[str, Any] = self._asked(
                lambda: create(self.namespace, body, _request_timeout=_TIMEOUT)
            )
        except ApiException as error:
            if error.status == _TAKEN:
                return None
            raise UsageError(f"namespace {self.namespace}: {_reason(error)}") from None
        return made

    def _asked(self, request: Callable[[], Any], tries: int = _PATIENT_TRIES) -> Any:
        """Returns the answer as plain JSON; asks again while the server is busy or away.

        Raises:
          ApiException: there is no such thing, or one of that name.
          UsageError: the server refuses what it gets, or this account.
          PeerLost: it is away for minutes; the Job goes on, and another try takes it over.
        """
        try:
            answer = again(request, "Kubernetes API", _is_passing, _reason, tries)
        except HTTPError as error:
            raise PeerLost(f"the Kubernetes API is away: {_reason(error)}") from None
        except ApiException as error:
            if error.status in (_GONE, _TAKEN):
                raise
            if _is_passing(error):
                raise PeerLost(f"the Kubernetes API is away: {_reason(error)}") from None
            mend = _RIGHTS if error.status == _FORBIDDEN else ""
            raise UsageError(f"namespace {self.namespace}: {_reason(error)}{mend}") from None
        return self._api.sanitize_for_serialization(answer)


def _namespace() -> str:
    if _NAMESPACE.is_file():
        return _NAMESPACE.read_text().strip()
    with contextlib.suppress(config.ConfigException):
        _, active = config.list_kube_config_contexts()
        return str(active["context"].get("namespace") or "default")
    return os.environ.get("KFP_NAMESPACE", "default")


def _is_passing(error: Exception) -> bool:
    return isinstance(error, HTTPError) or (
        isinstance(error, ApiException) and error.status in _BUSY
    )


def _reason(error: Exception) -> str:
    if isinstance(error, ApiException):
        with contextlib.suppress(ValueError, TypeError, AttributeError):
            return str(json.loads(error.body)["message"])
        return f"{error.status} {error.reason}"
    return str(error)
