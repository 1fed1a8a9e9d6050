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

from components.train_model.kubernetes.manifest import CONTAINER, CONTENT, LABEL, Plan
from trainer.again import again
from trainer.errors import UsageError

_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_GONE, _TAKEN, _FORBIDDEN = 404, 409, 403
_REFUSED = (401, _FORBIDDEN, 422)
_RIGHTS = (
    ": give the step's service account the rights of infra/kubernetes/namespace/role.yaml, or name "
    "one that has them (service_account)"
)
# What an API server that is busy, restarting or out of reach answers.
_BUSY = (429, 500, 502, 503, 504)


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
        """Makes what `plan` needs; returns whether the Job was not there before."""
        self._make(self._core.create_namespaced_service, plan.service())
        self._make(self._network.create_namespaced_network_policy, plan.network_policy())
        return self._make(self._batch.create_namespaced_job, plan.job())

    def job(self, plan: Plan) -> dict[str, Any] | None:
        """Returns the Job, None if there is none (any more)."""
        try:
            return self._asked(lambda: self._batch.read_namespaced_job(plan.name, self.namespace))
        except ApiException as error:
            if error.status == _GONE:
                return None
            raise

    def is_of(self, job: Mapping[str, Any], plan: Plan) -> bool:
        """Whether a Job was made from the same plan."""
        made = (job["metadata"].get("annotations") or {}).get(CONTENT)
        return bool(made == plan.job()["metadata"]["annotations"][CONTENT])

    def pods(self, plan: Plan) -> list[dict[str, Any]]:
        """Returns all pods of the Job, those of earlier tries included, the oldest first."""
        found = self._asked(
            lambda: self._core.list_namespaced_pod(
                self.namespace, label_selector=f"{LABEL}={plan.name}"
            )
        )
        return sorted(found["items"] or [], key=lambda pod: pod["metadata"]["creationTimestamp"])

    def log(self, pod: str, *, tail: int | None = None) -> Iterator[str]:
        """Yields a pod's lines; without `tail` as they come, until it ends."""
        with contextlib.suppress(ApiException, HTTPError):
            answer = self._core.read_namespaced_pod_log(
                pod, self.namespace, container=CONTAINER, follow=tail is None,
                _preload_content=False, **({"tail_lines": tail} if tail else {}),
            )  # fmt: skip
            rest = b""
            for part in answer.stream():
                *lines, rest = (rest + part).split(b"\n")
                yield from (line.decode("utf-8", "replace") for line in lines)
            if rest:
                yield rest.decode("utf-8", "replace")

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
            self._asked(lambda: remove(name, self.namespace, propagation_policy="Background"))
        except ApiException as error:
            if error.status != _GONE:
                raise

    def _make(self, create: Callable[..., Any], body: dict[str, Any]) -> bool:
        try:
            self._asked(lambda: create(self.namespace, body))
        except ApiException as error:
            if error.status == _TAKEN:
                return False
            raise
        return True

    def _asked(self, request: Callable[[], Any]) -> Any:
        """Returns the answer as plain JSON; asks again if the server is busy or away."""
        try:
            answer = again(request, "Kubernetes API", _is_passing, _reason)
        except ApiException as error:
            if error.status not in _REFUSED:
                raise
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
