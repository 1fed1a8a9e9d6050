"""infra/kubernetes: manifests that a server would take, rights as the table says, safe pods."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "infra" / "kubernetes"
NAMESPACE = FOLDER / "namespace"
EXAMPLES = sorted((FOLDER / "examples").glob("*.yaml"))
MANIFESTS = [
    path
    for path in (*sorted(NAMESPACE.glob("*.yaml")), *EXAMPLES)
    if path.name != "kustomization.yaml"
]
# The oldest that the examples name, and a newer one.
VERSIONS = ("1.31", "1.34")
BUILT_IN = ("v1", "batch/", "apps/", "networking.k8s.io/", "rbac.authorization.k8s.io/")
# Kind → the fields of its spec that we use, from the CRDs of Training Operator 1.9.4, Kubeflow
# Trainer 2.2.1 and KServe's v1beta1.
CUSTOM = {
    "TFJob": {"runPolicy", "tfReplicaSpecs"},
    "TrainingRuntime": {"mlPolicy", "template"},
    "TrainJob": {"runtimeRef", "trainer"},
    "InferenceService": {"predictor"},
}
RIGHTS = {
    ("batch", "jobs"): {"create", "get", "list", "watch", "patch", "delete"},
    ("", "services"): {"create", "get", "delete"},
    ("", "pods"): {"get", "list", "watch"},
    ("", "pods/log"): {"get"},
    ("", "events"): {"list"},
    ("networking.k8s.io", "networkpolicies"): {"create", "get", "delete"},
}
PORTS = {2222, 2223}


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def of_kind(path: Path, kind: str) -> dict[str, Any]:
    (found,) = [document for document in documents(path) if document["kind"] == kind]
    return found


def pods(value: Any) -> Iterator[dict[str, Any]]:
    """Yields every mapping that has containers: the specs of pods, wherever they stand."""
    if isinstance(value, dict):
        if "containers" in value:
            yield value
        for inner in value.values():
            yield from pods(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from pods(inner)


def exit_codes(job: dict[str, Any]) -> dict[int, str]:
    """Returns what a Job does at each exit code that its podFailurePolicy names."""
    return {
        code: rule["action"]
        for rule in job["podFailurePolicy"]["rules"]
        for code in rule.get("onExitCodes", {}).get("values", [])
    }


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_built_in_kinds_match_the_schema_of_kubernetes(path: Path, version: str) -> None:
    for document in documents(path):
        if document["apiVersion"].startswith(BUILT_IN):
            kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_custom_kinds_use_the_fields_that_their_operators_have(path: Path) -> None:
    for document in documents(path):
        if document["kind"] in CUSTOM:
            assert set(document["spec"]) == CUSTOM[document["kind"]]
        else:
            assert document["apiVersion"].startswith(BUILT_IN)


def test_pods_in_custom_kinds_match_the_schema_of_a_pod() -> None:
    checked = 0
    for path in EXAMPLES:
        for document in documents(path):
            if document["kind"] not in CUSTOM:
                continue
            for spec in pods(document):
                pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}
                kubernetes_validate.validate(pod, VERSIONS[0], strict=True)
                checked += 1
    assert checked == 4  # three replicas of the TFJob, one runtime


def test_the_training_step_may_do_what_the_table_says_and_no_more() -> None:
    rules = of_kind(NAMESPACE / "role.yaml", "Role")["rules"]
    held = {
        (group, resource): set(rule["verbs"])
        for rule in rules for group in rule["apiGroups"] for resource in rule["resources"]
    }  # fmt: skip
    assert held == RIGHTS
    assert sum(len(rule["apiGroups"]) * len(rule["resources"]) for rule in rules) == len(RIGHTS)


def test_the_rights_go_to_the_account_of_kfps_steps_in_its_namespace() -> None:
    binding = of_kind(NAMESPACE / "rolebinding.yaml", "RoleBinding")
    assert binding["roleRef"]["name"] == "castell-training"
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "pipeline-runner", "namespace": "kubeflow"}
    ]


def test_in_the_local_kfp_nothing_gives_the_steps_more() -> None:
    (patch,) = yaml.safe_load((FOLDER / "local" / "pipeline-runner.yaml").read_text())
    assert (patch["op"], patch["path"]) == ("replace", "/rules")
    resources = set()
    for rule in patch["value"]:
        assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])
        resources |= set(rule["resources"])
        if rule["resources"] == ["pods"]:
            assert rule["verbs"] == ["get"]
    stores = {"configmaps", "secrets", "persistentvolumeclaims"}
    assert resources == {"workflowtaskresults", "workflows", "pods", *stores}


def test_training_pods_are_closed_to_all() -> None:
    spec = of_kind(NAMESPACE / "networkpolicy.yaml", "NetworkPolicy")["spec"]
    assert spec["podSelector"]["matchExpressions"] == [
        {"key": "castell.dev/job", "operator": "Exists"}
    ]
    assert spec["policyTypes"] == ["Ingress"]
    assert "ingress" not in spec


@pytest.mark.parametrize("name", ["indexedjob.yaml", "tfjob.yaml", "trainjob.yaml"])
def test_a_job_admits_its_own_pods_where_they_listen_and_nobody_else(name: str) -> None:
    spec = of_kind(FOLDER / "examples" / name, "NetworkPolicy")["spec"]
    (rule,) = spec["ingress"]
    assert rule["from"] == [{"podSelector": spec["podSelector"]}]
    assert {port["port"] for port in rule["ports"]} == PORTS
    assert {port["protocol"] for port in rule["ports"]} == {"TCP"}
    assert "--lifeline-port=2223" in (FOLDER / "examples" / name).read_text()


@pytest.mark.parametrize("name", ["indexedjob.yaml", "tfjob.yaml", "trainjob.yaml"])
def test_pods_run_without_privileges(name: str) -> None:
    found = list(pods(documents(FOLDER / "examples" / name)))
    assert found
    for pod in found:
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 1000
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}


def test_exit_codes_restart_or_end_as_the_trainer_means_them() -> None:
    ends = dict.fromkeys((1, 2, 3), "FailJob") | dict.fromkeys((138, 143), "Ignore")
    job = of_kind(FOLDER / "examples" / "indexedjob.yaml", "Job")["spec"]
    assert exit_codes(job) == ends
    assert job["activeDeadlineSeconds"] > 0
    runtime = of_kind(FOLDER / "examples" / "trainjob.yaml", "TrainingRuntime")
    (node,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    assert exit_codes(node["template"]["spec"]) == ends
    tfjob = of_kind(FOLDER / "examples" / "tfjob.yaml", "TFJob")["spec"]["tfReplicaSpecs"]
    assert {replica["restartPolicy"] for replica in tfjob.values()} == {"ExitCode"}
    assert all(pod["containers"][0]["name"] == "tensorflow" for pod in pods(tfjob))


def hosts(environment: list[dict[str, str]]) -> list[str]:
    (value,) = [entry["value"] for entry in environment if entry["name"] == "CASTELL_WORKER_HOSTS"]
    return value.split(",")


def test_the_workers_are_as_many_as_the_hosts_and_called_so() -> None:
    name = "flights"
    job = of_kind(FOLDER / "examples" / "indexedjob.yaml", "Job")["spec"]
    (container,) = job["template"]["spec"]["containers"]
    assert job["completions"] == job["parallelism"]
    assert hosts(container["env"]) == [f"{name}-{i}.{name}:2222" for i in range(job["completions"])]
    trainer = of_kind(FOLDER / "examples" / "trainjob.yaml", "TrainJob")["spec"]["trainer"]
    assert hosts(trainer["env"]) == [
        f"{name}-node-0-{i}.{name}:2222" for i in range(trainer["numNodes"])
    ]


def test_the_console_is_led_to_by_kind_and_told_by_the_script() -> None:
    kind = yaml.safe_load((FOLDER / "kind.yaml").read_text())
    (mapping,) = kind["nodes"][0]["extraPortMappings"]
    service = yaml.safe_load((FOLDER / "local" / "console.yaml").read_text())
    assert mapping["listenAddress"] == "127.0.0.1"
    assert mapping["containerPort"] == service["spec"]["ports"][0]["nodePort"]
    assert f"HOST=http://localhost:{mapping['hostPort']}" in (FOLDER / "up.sh").read_text()


def test_script_and_overlay_name_one_version_of_kfp() -> None:
    script = (FOLDER / "up.sh").read_text()
    (version,) = [line.partition("=")[2] for line in script.splitlines() if "KFP_VERSION=" in line]
    assert version.startswith("2.17.")
    assert f"?ref={version}&" in (FOLDER / "local" / "kustomization.yaml").read_text()


def test_the_readme_tells_the_rights_of_the_role() -> None:
    text = (FOLDER / "README.md").read_text()
    told = {
        resource: set(verbs.split(", "))
        for verbs, resources in re.findall(r"^\| ([a-z, ]+) \| ([a-z/, ]+) \|$", text, re.M)
        if verbs != "it may"
        for resource in resources.split(", ")
    }
    assert told == {resource: verbs for (_, resource), verbs in RIGHTS.items()}
