"""What the API server does to a new object before it keeps it: defaults and refusals.

Only what the training step could get wrong is checked, in the words of Kubernetes'
pkg/apis/batch/validation and pkg/apis/core/validation. What this double can't run (another
completion mode, several containers) is refused with 501.
"""

from __future__ import annotations

import copy
import re
import uuid
from collections.abc import Callable

from tests.doubles.kubernetes.pods import DEFAULT_GRACE_SECONDS
from tests.doubles.kubernetes.status import Json, beyond_the_double, invalid
from tests.doubles.kubernetes.store import JOBS, PODS, SERVICES, Kind

Causes = list[tuple[str, str]]

DEFAULT_BACKOFF_LIMIT = 6
NO_BACKOFF_LIMIT = 2**31 - 1
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SERVICE = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
# Of a Job's spec, what may change after it was made.
_MUTABLE = {
    "suspend",
    "parallelism",
    "activeDeadlineSeconds",
    "ttlSecondsAfterFinished",
    "backoffLimit",
}


def admit(kind: Kind, thing: Json) -> Json:
    """Returns the object as it is kept.

    Raises:
      Refused: 422 with all that is wrong; 501, right but beyond this double.
    """
    thing = copy.deepcopy(thing)
    meta = thing.setdefault("metadata", {})
    thing.pop("status", None)
    name = meta.get("name") or meta.get("generateName", "")
    wrong: Causes = []
    if not name:
        wrong.append(("metadata.name", "Required value: name or generateName is required"))
    elif not _SUBDOMAIN.fullmatch(name.rstrip("-") if "name" not in meta else name):
        wrong.append(("metadata.name", not_a_name(name, "a lowercase RFC 1123 subdomain")))
    checks: dict[Kind, Callable[[Json, str, Causes], None]] = {
        JOBS: _job, PODS: _pod, SERVICES: _service,
    }  # fmt: skip
    if kind in checks and not wrong:
        checks[kind](thing, name, wrong)
    if wrong:
        raise invalid(kind.kind, name, wrong)
    return thing


def admit_change(kind: Kind, old: Json, new: Json) -> None:
    """Raises Refused (422) where a change touches what is fixed."""
    if kind is not JOBS:
        return
    fixed = [
        key
        for key in sorted(old["spec"].keys() | new["spec"].keys())
        if key not in _MUTABLE and old["spec"].get(key) != new["spec"].get(key)
    ]
    if fixed:
        name = old["metadata"]["name"]
        raise invalid(
            "Job", name, [(f"spec.{key}", "Invalid value: field is immutable") for key in fixed]
        )


def _job(job: Json, name: str, wrong: Causes) -> None:
    spec = job.setdefault("spec", {})
    per_index = spec.get("backoffLimitPerIndex")
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("parallelism", 1)
    spec.setdefault("suspend", False)
    spec.setdefault(
        "backoffLimit", DEFAULT_BACKOFF_LIMIT if per_index is None else NO_BACKOFF_LIMIT
    )
    policy = spec.get("podFailurePolicy")
    # With a policy, a pod that is going is not replaced before it is gone.
    spec.setdefault("podReplacementPolicy", "Failed" if policy else "TerminatingOrFailed")
    if spec["completionMode"] != "Indexed":
        raise beyond_the_double(f"Jobs of completionMode {spec['completionMode']}")
    completions = spec.get("completions")
    if completions is None:
        wrong.append(("spec.completions", "Required value: when completion mode is Indexed"))
    elif not _LABEL.fullmatch(f"{name}-{completions - 1}"):
        why = not_a_name(f"{name}-{completions - 1}", "a lowercase RFC 1123 label")
        wrong.append(
            ("metadata.name", f"will not able to create pod with invalid DNS label: {why}")
        )
    if spec.get("maxFailedIndexes") is not None and per_index is None:
        wrong.append(
            ("spec.backoffLimitPerIndex", "Required value: when maxFailedIndexes is specified")
        )
    uid = job["metadata"].setdefault("uid", str(uuid.uuid4()))
    template = spec.setdefault("template", {})
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    for prefix in ("", "batch.kubernetes.io/"):
        labels |= {f"{prefix}controller-uid": uid, f"{prefix}job-name": name}
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    job["metadata"]["labels"] = {**labels, **(job["metadata"].get("labels") or {})}
    restart = template.get("spec", {}).get("restartPolicy", "Always")
    if restart not in {"Never", "OnFailure"}:
        wrong.append(
            _unsupported("spec.template.spec.restartPolicy", restart, "OnFailure", "Never")
        )
    elif restart == "OnFailure" and not policy:
        raise beyond_the_double("restartPolicy OnFailure")
    if policy:
        _policy(policy, spec, restart, wrong)
    _pod_spec(template.setdefault("spec", {}), "spec.template.spec", wrong)
    job["status"] = {}


def _policy(policy: Json, spec: Json, restart: str, wrong: Causes) -> None:
    if restart != "Never":
        only = 'only "Never" is supported when podFailurePolicy is specified'
        wrong.append(("spec.template.spec.restartPolicy", f'Invalid value: "{restart}": {only}'))
    containers = {c.get("name") for c in spec["template"]["spec"].get("containers", [])}
    for place, rule in enumerate(policy.get("rules", [])):
        at = f"spec.podFailurePolicy.rules[{place}]"
        action = rule.get("action")
        if action not in {"Count", "FailIndex", "FailJob", "Ignore"}:
            wrong.append(
                _unsupported(f"{at}.action", action, "Count", "FailIndex", "FailJob", "Ignore")
            )
        if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
            text = 'Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set'
            wrong.append((f"{at}.action", text))
        codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
        if bool(codes) == bool(conditions):
            text = "Invalid value: specifying one of OnExitCodes and OnPodConditions is required"
            wrong.append((at, text))
        if codes:
            _exit_codes(codes, f"{at}.onExitCodes", containers, wrong)
        for condition in conditions or []:
            # As the API server's defaults do.
            condition.setdefault("status", "True")


def _exit_codes(codes: Json, at: str, containers: set[str | None], wrong: Causes) -> None:
    values, operator = codes.get("values") or [], codes.get("operator")
    if operator not in {"In", "NotIn"}:
        wrong.append(_unsupported(f"{at}.operator", operator, "In", "NotIn"))
    if not values:
        wrong.append((f"{at}.values", "Invalid value: at least one value is required"))
    if values != sorted(values):
        wrong.append((f"{at}.values", "Invalid value: must be ordered"))
    if len(set(values)) != len(values):
        wrong.append((f"{at}.values", "Duplicate value"))
    if operator == "In" and 0 in values:
        text = "Invalid value: 0: must not be 0 for the In operator"
        wrong.append((f"{at}.values[{values.index(0)}]", text))
    if codes.get("containerName") not in containers | {None}:
        text = "must be one of the container or initContainer names in the pod template"
        wrong.append((f"{at}.containerName", f'Invalid value: "{codes["containerName"]}": {text}'))


def _pod(pod: Json, name: str, wrong: Causes) -> None:
    _pod_spec(pod.setdefault("spec", {}), "spec", wrong)
    if pod["spec"].setdefault("restartPolicy", "Always") != "Never":
        raise beyond_the_double(f"pods of restartPolicy {pod['spec']['restartPolicy']}")
    pod["status"] = {"phase": "Pending", "conditions": []}


def _pod_spec(spec: Json, at: str, wrong: Causes) -> None:
    spec.setdefault("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS)
    containers = spec.get("containers") or []
    if not containers:
        wrong.append((f"{at}.containers", "Required value"))
    volumes = {volume["name"] for volume in spec.get("volumes") or []}
    for place, container in enumerate(containers):
        for key in ("name", "image"):
            if not container.get(key):
                wrong.append((f"{at}.containers[{place}].{key}", "Required value"))
        for number, mount in enumerate(container.get("volumeMounts") or []):
            if mount["name"] not in volumes:
                path = f"{at}.containers[{place}].volumeMounts[{number}].name"
                wrong.append((path, f'Not found: "{mount["name"]}"'))
    for key in ("subdomain", "hostname"):
        if spec.get(key) and not _LABEL.fullmatch(spec[key]):
            wrong.append((f"{at}.{key}", not_a_name(spec[key], "a lowercase RFC 1123 label")))
    if len(containers) > 1 or spec.get("initContainers"):
        raise beyond_the_double("pods of more than one container")


def _service(service: Json, name: str, wrong: Causes) -> None:
    if not _SERVICE.fullmatch(name):
        wrong.append(("metadata.name", not_a_name(name, "a DNS-1035 label")))
    spec = service.setdefault("spec", {})
    if spec.setdefault("type", "ClusterIP") != "ClusterIP" or spec.get("clusterIP") != "None":
        raise beyond_the_double("Services but headless ones (clusterIP: None)")
    ports = spec.get("ports") or []
    if len(ports) > 1:
        for place, port in enumerate(ports):
            if not port.get("name"):
                wrong.append((f"spec.ports[{place}].name", "Required value"))
    service["status"] = {"loadBalancer": {}}


def _unsupported(field: str, value: object, *known: str) -> tuple[str, str]:
    listed = ", ".join(f'"{word}"' for word in known)
    return field, f'Unsupported value: "{value}": supported values: {listed}'


def not_a_name(value: str, what: str) -> str:
    return f'Invalid value: "{value}": {what} must consist of lower case alphanumeric characters'
