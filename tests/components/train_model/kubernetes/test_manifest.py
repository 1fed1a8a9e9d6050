"""What is made in a cluster: valid for its schemas, the same for the same output, safe."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from components.train_model.kubernetes.manifest import LABEL, Plan
from tests.components.train_model.kubernetes.plans import make_plan
from trainer.config import load

ROOT = Path(__file__).parents[4]
PLAN = make_plan()


@pytest.mark.parametrize("version", ["1.31", "1.34"])
@pytest.mark.parametrize("kind", ["job", "service", "network_policy"])
def test_a_server_would_take_it(kind: str, version: str) -> None:
    kubernetes_validate.validate(getattr(PLAN, kind)(), version, strict=True)


def test_the_name_follows_from_the_output_alone() -> None:
    assert PLAN.name == make_plan(workers=2, image="x").name
    assert PLAN.name != make_plan(output="s3://bucket/another").name
    assert len(f"{PLAN.name}-99") < 63
    names = {made()["metadata"]["name"] for made in (PLAN.job, PLAN.service, PLAN.network_policy)}
    assert names == {PLAN.name}


def test_another_content_is_another_job() -> None:
    def content(plan: Plan) -> Any:
        return plan.job()["metadata"]["annotations"]

    assert content(PLAN) == content(make_plan())
    # A second try is a pod of its own.
    assert content(PLAN) == content(make_plan(owner=None))
    assert content(PLAN) != content(make_plan(task="text"))


def test_the_workers_get_the_configuration_as_it_was_given() -> None:
    args = container(PLAN)["args"]
    (file,) = [arg.removeprefix("--config=") for arg in args if arg.startswith("--config=")]
    config = load(file, {"output": "x"})
    assert config.global_batch == 96
    assert config.options == {"hidden": [8, 4]}
    assert config.class_weights == {"no": 1, "50%": 2}
    assert {"--data=s3://bucket/dataset", "--output=s3://bucket/run"} <= set(args)


def test_pods_find_each_other_by_name_and_nobody_else_finds_them() -> None:
    assert container(PLAN)["env"][-1] == {
        "name": "CASTELL_WORKER_HOSTS",
        "value": ",".join(f"{PLAN.name}-{i}.{PLAN.name}:2222" for i in range(3)),
    }
    assert container(make_plan(workers=1))["env"] == []
    spec = PLAN.job()["spec"]["template"]["spec"]
    assert spec["subdomain"] == PLAN.service()["metadata"]["name"]
    assert PLAN.service()["spec"]["selector"] == {LABEL: PLAN.name}
    ports = {port["port"] for port in PLAN.service()["spec"]["ports"]}
    (rule,) = PLAN.network_policy()["spec"]["ingress"]
    assert ports == {port["port"] for port in rule["ports"]} == {2222, 2223}
    assert rule["from"] == [{"podSelector": {"matchLabels": {LABEL: PLAN.name}}}]


def test_exit_codes_mean_to_the_job_what_they_mean_to_us() -> None:
    rules = PLAN.job()["spec"]["podFailurePolicy"]["rules"]
    assert [
        (rule["action"], rule.get("onExitCodes", {}).get("values")) for rule in rules
    ] == [("FailJob", [1, 2, 3]), ("Ignore", None), ("Ignore", [138, 143])]  # fmt: skip


def test_what_was_set_on_the_task_is_in_the_pods() -> None:
    given: dict[str, Any] = {
        "env": [{"name": "A", "value": "b"}],
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "node_selector": {"pool": "gpu"},
        "affinity": {"nodeAffinity": {}},
        "volumes": [{"name": "w", "persistentVolumeClaim": {"claimName": "workspace"}}],
        "volume_mounts": [{"name": "w", "mountPath": "/workspace"}],
    }
    plan = make_plan(**given)
    spec = plan.job()["spec"]["template"]["spec"]
    kubernetes_validate.validate(plan.job(), "1.34", strict=True)
    assert spec["tolerations"] == given["tolerations"]
    assert spec["nodeSelector"] == given["node_selector"]
    assert spec["affinity"] == given["affinity"]
    assert given["volumes"][0] in spec["volumes"]
    assert given["volume_mounts"][0] in container(plan)["volumeMounts"]
    assert given["env"][0] in container(plan)["env"]
    assert container(plan)["resources"] == PLAN.resources


def test_the_example_that_people_copy_is_what_is_made() -> None:
    """infra/kubernetes/examples/indexedjob.yaml, but for names, resources and arguments."""
    text = (ROOT / "infra" / "kubernetes" / "examples" / "indexedjob.yaml").read_text()
    service, policy, job = yaml.safe_load_all(text)
    plan = dataclasses.replace(PLAN, owner=None)
    for theirs, ours in ((service, plan.service()), (policy, plan.network_policy())):
        assert with_name(theirs["spec"], plan.name) == ours["spec"]
    ours = plan.job()["spec"]
    theirs = with_name(job["spec"], plan.name)
    for key in (
        "completionMode", "completions", "parallelism", "podFailurePolicy",
        "backoffLimitPerIndex", "maxFailedIndexes",
    ):  # fmt: skip
        assert theirs[key] == ours[key]
    pod, made = (spec["template"]["spec"] for spec in (theirs, ours))
    for key in ("restartPolicy", "subdomain", "securityContext", "affinity"):
        assert pod[key] == made[key]
    for key in ("ports", "securityContext", "volumeMounts"):
        assert pod["containers"][0][key] == made["containers"][0][key]


def with_name(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {key: with_name(inner, name) for key, inner in value.items()}
    if isinstance(value, list):
        return [with_name(inner, name) for inner in value]
    return name if value == "flights" else value


def container(plan: Plan) -> Any:
    (only,) = plan.job()["spec"]["template"]["spec"]["containers"]
    return only
