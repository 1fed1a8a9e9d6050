"""The training job on Vertex AI, as Google's launcher makes it out of the compiled pipeline.

What the platform does is played here: parameters into the payload, empty fields removed by the
launcher's own function, the job created by the launcher's own function and the real client, and
each replica told of the others in CLUSTER_SPEC.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud.aiplatform_v1 import JobServiceClient
from google_cloud_pipeline_components.container.v1.custom_job import remote_runner
from google_cloud_pipeline_components.container.v1.gcp_launcher.utils import json_util

from components.steps import whole_numbers
from pipelines.compile import compile_to
from tests.doubles.vertex import Vertex
from tests.pipelines import golden, ir
from trainer.cluster.resolve import resolve

PARENT = "projects/a-project/locations/us-central1"
GPU = {"machine_type": "g2-standard-8", "accelerator_type": "NVIDIA_L4"}


def created(directory: Path, workers: int, **settings: str) -> dict[str, Any]:
    """Returns the body of the request that creates the job of a compiled pipeline."""
    file = directory / "x.yaml"
    compile_to(str(file), "train_evaluate_export", target="vertex", workers=workers, flags=settings)
    document = yaml.safe_load(file.read_text())
    payload = json_util.recursive_remove_empty(json.loads(resolved(document)))
    with Vertex() as server:
        client = JobServiceClient(
            transport="rest",
            credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]
            client_options=ClientOptions(api_endpoint=server.address),
        )
        remote_runner.create_custom_job_with_client(client, PARENT, payload)
        (asked,) = server.sent("POST", "/customJobs")
    return dict(asked.body)


def resolved(document: Any) -> str:
    """Returns the launcher's payload with the parameters in it."""
    args = document["deploymentSpec"]["executors"]["exec-train-model"]["container"]["args"]
    declared = document["components"]["comp-train-model"]["inputDefinitions"]["parameters"]
    given = {
        "{{$.pipeline_persistent_resource_id}}": "",  # as for a pipeline job without one
        **{n: d["defaultValue"] for n, d in declared.items() if "defaultValue" in d},
    }

    def value(match: re.Match[str]) -> str:
        found = given[match[1]]
        found = given.get(found, found) if isinstance(found, str) else found
        # Whole numbers are written without a point, as protobuf's JSON is.
        return found if isinstance(found, str) else json.dumps(whole_numbers(found))

    text = args[args.index("--payload") + 1]
    return re.sub(r"\{\{\$\.inputs\.parameters\['(\w+)'\]\}\}", value, text)


def pools(body: dict[str, Any]) -> list[dict[str, Any]]:
    return list(body["jobSpec"]["workerPoolSpecs"])


def clusters(body: dict[str, Any]) -> list[str]:
    """Returns the role and size that our trainer finds in each replica."""
    names = {
        f"workerpool{i}": [f"pool{i}-{n}:2222" for n in range(int(pool["replicaCount"]))]
        for i, pool in enumerate(pools(body))
    }
    found = []
    for kind, hosts in names.items():
        for index in range(len(hosts)):
            task = {"type": kind, "index": index}
            spec = resolve({"CLUSTER_SPEC": json.dumps({"cluster": names, "task": task})})
            found.append(f"{spec.role} of {spec.world_size}")
    return found


def test_one_worker_is_one_pool(tmp_path: Path) -> None:
    (pool,) = pools(created(tmp_path, 1))
    assert pool["replicaCount"] == "1"
    assert pool["machineSpec"] == {"machineType": "n1-standard-8"}
    assert pool["containerSpec"]["args"][:2] == ["--executor_input", "{{$.json_escape[1]}}"]


def test_workers_are_a_second_pool_of_the_same_machines(tmp_path: Path) -> None:
    body = created(tmp_path, 4)
    chief, others = pools(body)
    assert (chief["replicaCount"], others["replicaCount"]) == ("1", "3")
    assert {**others, "replicaCount": "1"} == chief
    assert clusters(body) == ["chief of 4", "worker of 4", "worker of 4", "worker of 4"]


def test_an_evaluator_stays_one_without_a_pool_before_it(tmp_path: Path) -> None:
    """Google's launcher deletes empty pools, and an evaluator would become a worker."""
    body = created(tmp_path, 2, evaluator="true")
    assert clusters(body) == ["chief of 2", "worker of 2", "ps of 2", "evaluator of 2"]
    holder = pools(body)[2]
    assert holder["containerSpec"]["command"] == ["sleep", "infinity"]
    assert holder["machineSpec"] == {"machineType": "e2-standard-4"}
    assert pools(body)[3] == pools(body)[0]


def test_reduction_servers_hold_the_third_pool(tmp_path: Path) -> None:
    body = created(tmp_path, 2, evaluator="true", reduction_servers="3", **GPU)
    assert [pool["replicaCount"] for pool in pools(body)] == ["1", "1", "3", "1"]
    servers = pools(body)[2]
    assert servers["machineSpec"] == {"machineType": "n1-highcpu-16"}
    assert "reductionserver" in servers["containerSpec"]["imageUri"]
    assert "command" not in servers["containerSpec"]


def test_a_tpu_has_its_topology(tmp_path: Path) -> None:
    (pool,) = pools(created(tmp_path, 1, machine_type="ct5lp-hightpu-4t", tpu_topology="2x2"))
    assert pool["machineSpec"] == {"machineType": "ct5lp-hightpu-4t", "tpuTopology": "2x2"}


def test_everything_that_can_be_set_reaches_the_job(tmp_path: Path) -> None:
    body = created(
        tmp_path, 2, **GPU, strategy="FLEX_START", max_wait_hours="2", timeout_hours="3",
        disk_type="pd-standard", disk_gigabytes="200", labels="{team: delays}",
        service_account="a@b.iam.gserviceaccount.com", network="projects/1/global/networks/shared",
        reserved_ip_ranges="[range]", web_access="true",
        kms_key="projects/p/locations/us-central1/keyRings/r/cryptoKeys/k",
        tensorboard="projects/1/locations/us-central1/tensorboards/2",
        base_output_directory="gs://bucket/board",
        nfs_mounts="[{server: 10.0.0.1, path: /data, mount_point: data}]",
    )  # fmt: skip
    for pool in pools(body):
        pool["containerSpec"]["command"] = "the step"
    golden.check("vertex_custom_job", body)


@pytest.mark.parametrize(
    ("setting", "value", "found"),
    [
        ("persistent_resource", "standby", {"persistentResourceId": "standby"}),
        (
            "psc_attachment",
            "projects/p/regions/us-central1/networkAttachments/a",
            {
                "pscInterfaceConfig": {
                    "networkAttachment": "projects/p/regions/us-central1/networkAttachments/a"
                }
            },
        ),
        (
            "restart_on_worker_restart",
            "false",
            {"scheduling": {"timeout": "604800s", "strategy": 3}},
        ),
        (
            "strategy",
            "SPOT",
            {
                "scheduling": {
                    "timeout": "604800s",
                    "strategy": 4,
                    "restartJobOnWorkerRestart": True,
                }
            },
        ),
    ],
)
def test_a_setting_reaches_the_job(
    tmp_path: Path, setting: str, value: str, found: dict[str, Any]
) -> None:
    spec = created(tmp_path, 1, **{setting: value})["jobSpec"]
    assert {name: spec[name] for name in found} == found


def test_a_pipeline_with_everything_is_valid_for_both_of_kfp_s_messages(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    flags = {
        "evaluator": "true",
        "model": "late",
        "endpoint": "late",
        "version_aliases": "[canary]",
    }
    compile_to(str(file), "train_evaluate_export", target="vertex", workers=2, flags=flags)
    (document,) = yaml.safe_load_all(file.read_text())
    spec, executors = ir.pipeline_spec(document), ir.deployment(document).executors
    assert {"exec-register-model", "exec-deploy-model"} <= set(executors)
    # Only what passes is registered, and only what is registered is deployed.
    passed = spec.components["comp-condition-1"].dag.tasks
    assert set(passed) == {"export-model", "register-model", "deploy-model"}
    assert list(passed["deploy-model"].dependent_tasks) == ["register-model"]


def test_without_a_name_for_the_model_nothing_follows_the_export() -> None:
    assert set(ir.document("train_evaluate_export", "vertex")["components"]) == set(
        ir.document("train_evaluate_export", "local")["components"]
    )
