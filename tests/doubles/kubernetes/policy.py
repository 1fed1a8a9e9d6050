"""podFailurePolicy: what the end of one pod means for its Job.

After kubernetes/kubernetes pkg/controller/job/pod_failure_policy.go: the first rule that fits
decides; exit code 0 fits none; a container that still runs has no exit code; without a rule that
fits, a failure counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.doubles.kubernetes.status import Json


@dataclass(frozen=True)
class Judgement:
    """`action` is empty where no rule fits; `message` is there for FailJob alone."""

    action: str = ""
    message: str = ""

    @property
    def counts(self) -> bool:
        """Whether the failure is one of backoffLimit and of backoffLimitPerIndex."""
        return self.action != "Ignore"


def judge(policy: Json | None, pod: Json) -> Judgement:
    for place, rule in enumerate((policy or {}).get("rules", [])):
        because = _reason(rule, pod)
        if because:
            action = rule["action"]
            message = f"{because} matching {action} rule at index {place}"
            return Judgement(action, message if action == "FailJob" else "")
    return Judgement()


def _reason(rule: Json, pod: Json) -> str:
    """Why a rule fits, in the controller's words; nothing if it doesn't."""
    where = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    if codes := rule.get("onExitCodes"):
        for container in pod["status"].get("containerStatuses", []):
            if _fits(codes, container):
                code = container["state"]["terminated"]["exitCode"]
                return f"Container {container['name']} for pod {where} failed with exit code {code}"
        return ""
    for wanted in rule.get("onPodConditions", []):
        for found in pod["status"].get("conditions", []):
            if (found["type"], found["status"]) == (wanted["type"], wanted.get("status", "True")):
                return f"Pod {where} has condition {found['type']}"
    return ""


def _fits(codes: Json, container: Json) -> bool:
    code = container["state"].get("terminated", {}).get("exitCode", 0)
    right_one = codes.get("containerName") in {None, container["name"]}
    return right_one and code != 0 and (code in codes["values"]) == (codes["operator"] == "In")
