"""infra/terraform: it parses, hangs together, grants what its tables say, tells submit enough."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pipelines import settings
from pipelines.targets.vertex import limits
from pipelines.targets.vertex.settings import VertexSettings
from tests.infra.hcl import FOLDER, files, module

PUBLIC = {"allUsers", "allAuthenticatedUsers"}
BASIC_ROLES = {"roles/owner", "roles/editor", "roles/viewer"}
# What an account does on Vertex AI, and what it must never be able to do.
VERTEX_VERBS = {
    "submitter": {"customJobs", "pipelineJobs", "schedules", "contexts", "metadataStores"},
    "training": {
        "tensorboards",
        "tensorboardExperiments",
        "tensorboardRuns",
        "tensorboardTimeSeries",
    },
}
# `terraform output -raw settings` of a plan with network_access = "psc" and made-up numbers.
SETTINGS = """\
"vertex":
  "base_output_directory": "gs://my-project-castell-pipelines/pipeline-root/tensorboard"
  "kms_key": "projects/my-project/locations/europe-west4/keyRings/castell-europe-west4/cryptoKeys/vertex"
  "labels":
    "app": "castell"
  "location": "europe-west4"
  "pipeline_root": "gs://my-project-castell-pipelines/pipeline-root"
  "project": "my-project"
  "psc_attachment": "projects/my-project/regions/europe-west4/networkAttachments/castell-jobs"
  "service_account": "castell-pipeline@my-project.iam.gserviceaccount.com"
  "tensorboard": "projects/123456789012/locations/europe-west4/tensorboards/1"
"""  # noqa: E501
ATTACHMENT = re.compile(r'  "psc_attachment": .*\n')
NETWORK = '  "network": "projects/123456789012/global/networks/castell"\n'


def bodies(type_: str) -> list[dict[str, Any]]:
    found = [body for (kind, _), body in module().resources.items() if kind == type_]
    assert found, type_
    return found


def test_every_variable_is_described_typed_and_used() -> None:
    used = set().union(*module().references.values())
    for name, variable in module().variables.items():
        assert variable["description"].rstrip().endswith((".", "]")), name
        assert "type" in variable, name
        assert f"var.{name}" in used, name


def test_every_variable_that_can_be_wrong_is_validated_and_names_itself() -> None:
    for name, variable in module().variables.items():
        assert variable["validation"], name
        for rule in variable["validation"]:
            assert name in rule["error_message"], name


def test_every_reference_resolves() -> None:
    declared = module()
    there = {f"var.{name}" for name in declared.variables}
    there |= {f"local.{name}" for name in declared.local_values}
    there |= {".".join(key) for key in declared.resources}
    there |= {f"data.{'.'.join(key)}" for key in declared.data}
    for file, names in declared.references.items():
        assert names <= there, (file, names - there)


def test_every_local_value_is_used() -> None:
    used = set().union(*module().references.values())
    assert {f"local.{name}" for name in module().local_values} <= used


def test_the_example_names_variables_that_are_there_and_all_that_must_be_given() -> None:
    text = (FOLDER / "terraform.tfvars.example").read_text()
    named = set(re.findall(r"^(\w+)\s*=", text, re.MULTILINE))
    needed = {name for name, variable in module().variables.items() if "default" not in variable}
    assert needed == {"project", "location"}
    assert needed <= named <= set(module().variables)


def test_submit_knows_every_setting_that_is_rendered() -> None:
    rendered = set(module().local_values["vertex"])
    assert rendered <= set(VertexSettings.model_fields)
    assert {"project", "location", "pipeline_root", "service_account", "labels"} <= rendered
    assert rendered <= set(module().outputs)


@pytest.mark.parametrize("way", ["psc", "peering"])
def test_submit_takes_the_rendered_settings(way: str, tmp_path: Path) -> None:
    file = tmp_path / "castell.yaml"
    file.write_text(SETTINGS if way == "psc" else ATTACHMENT.sub(NETWORK, SETTINGS))
    read = settings.read("vertex", {}, file=str(file), environ={})
    limits.check(read, workers=4)
    assert read.model_fields_set <= set(module().local_values["vertex"])
    assert bool(read.network) == (way == "peering")


def test_a_network_and_an_attachment_cannot_both_be_asked_for() -> None:
    way = module().variables["network_access"]
    assert way["type"] == "string"
    assert way["default"] == "psc"
    assert [rule["condition"] for rule in way["validation"]] == [
        '${contains(["psc", "peering", "none"], var.network_access)}'
    ]
    counts = {
        type_: body["count"] for (type_, _), body in module().resources.items() if "count" in body
    }
    assert counts["google_compute_network_attachment"] == "${local.with_psc}"
    assert counts["google_service_networking_connection"] == "${local.with_peering}"


def test_buckets_are_private_versioned_and_encrypted_with_our_key() -> None:
    for bucket in bodies("google_storage_bucket"):
        assert bucket["uniform_bucket_level_access"] is True
        assert bucket["public_access_prevention"] == "enforced"
        assert bucket["versioning"] == [{"enabled": True}]
        assert "google_kms_crypto_key.this" in bucket["encryption"][0]["default_kms_key_name"]
        assert bucket.get("force_destroy", False) is False


def test_images_and_curves_are_encrypted_with_our_keys() -> None:
    (images,) = bodies("google_artifact_registry_repository")
    assert 'google_kms_crypto_key.this["registry"]' in images["kms_key_name"]
    assert images["docker_config"] == [{"immutable_tags": True}]
    assert images["cleanup_policies"]
    (curves,) = bodies("google_vertex_ai_tensorboard")
    assert 'google_kms_crypto_key.this["vertex"]' in curves["encryption_spec"][0]["kms_key_name"]


def test_keys_rotate_and_cannot_be_destroyed() -> None:
    (key,) = bodies("google_kms_crypto_key")
    assert key["rotation_period"] == f"{90 * 24 * 60 * 60}s"
    assert key["lifecycle"] == [{"prevent_destroy": True}]


def test_nobody_is_given_a_basic_role_and_nothing_is_public() -> None:
    text = "".join(path.read_text() for path in files())
    assert not [name for name in BASIC_ROLES | PUBLIC if f'"{name}"' in text]


def test_grants_add_and_never_replace_those_of_others() -> None:
    authoritative = re.compile(r"_iam_(policy|binding)$")
    assert not [type_ for type_, _ in module().resources if authoritative.search(type_)]


@pytest.mark.parametrize("account", sorted(VERTEX_VERBS))
def test_an_account_touches_no_other_kind_of_vertex_resource(account: str) -> None:
    permissions = module().local_values["permissions"][account]
    if permissions == "${local.curves}":
        permissions = module().local_values["curves"]
    kinds = {permission.strip('"').split(".")[1] for permission in permissions}
    assert kinds == VERTEX_VERBS[account]


def test_only_the_steps_start_jobs_and_only_the_submitter_starts_runs() -> None:
    permissions = {name: str(held) for name, held in module().local_values["permissions"].items()}
    starts_jobs = {name for name, held in permissions.items() if "customJobs.create" in held}
    starts_runs = {name for name, held in permissions.items() if "pipelineJobs.create" in held}
    assert (starts_jobs, starts_runs) == ({"pipeline"}, {"submitter"})


def test_data_is_written_by_no_account_of_ours() -> None:
    grants = module().local_values["bucket_roles"]
    assert {role for buckets in grants.values() for role in buckets.get("data", [])} == {
        "roles/storage.objectViewer",
        "roles/storage.legacyBucketReader",
    }
    writers = {
        name for name, buckets in grants.items()
        if "roles/storage.objectUser" in buckets.get("pipelines", [])
    }  # fmt: skip
    assert writers == {"pipeline", "training"}


def test_a_stalled_run_is_noticed_by_vertex_ais_own_metric() -> None:
    stalled = module().resources["google_monitoring_alert_policy", "stalled_run"]
    (threshold,) = stalled["conditions"][0]["condition_threshold"]
    assert "aiplatform.googleapis.com/pipelinejob/duration" in threshold["filter"]
    assert threshold["threshold_value"] == "${var.max_run_hours * 60 * 60}"
