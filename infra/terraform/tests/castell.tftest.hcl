# `terraform test` (1.11 or newer) plans against made-up providers: no project, no credentials.

mock_provider "google" {
  # What Google would fill in has a value in a plan, too.
  override_during = plan

  mock_resource "google_compute_network_attachment" {
    defaults = { id = "projects/my-project/regions/europe-west4/networkAttachments/castell-jobs" }
  }
  mock_resource "google_kms_crypto_key" {
    defaults = { id = "projects/my-project/locations/europe-west4/keyRings/castell-europe-west4/cryptoKeys/vertex" }
  }
  mock_resource "google_service_account" {
    defaults = { email = "castell-some@my-project.iam.gserviceaccount.com" }
  }
  mock_resource "google_vertex_ai_tensorboard" {
    defaults = { name = "projects/123456789012/locations/europe-west4/tensorboards/1" }
  }

  mock_data "google_project" {
    defaults = { number = "123456789012" }
  }
  mock_data "google_storage_project_service_account" {
    defaults = { member = "serviceAccount:service-123456789012@gs-project-accounts.iam.gserviceaccount.com" }
  }
}

mock_provider "google-beta" {
  override_during = plan
}

variables {
  project  = "my-project"
  location = "europe-west4"
}

run "psc_is_the_default_and_excludes_peering" {
  command = plan

  assert {
    condition     = length(google_compute_network_attachment.jobs) == 1 && length(google_service_networking_connection.peering) == 0
    error_message = "psc must make an attachment and no peering"
  }
  assert {
    condition     = output.network == null && output.psc_attachment != null
    error_message = "only the attachment may be a setting"
  }
  assert {
    condition     = !contains(keys(yamldecode(output.settings).vertex), "network")
    error_message = "what is null must not stand in the settings file"
  }
}

run "peering_names_the_network_by_number_and_excludes_psc" {
  command = plan

  variables {
    network_access = "peering"
  }
  assert {
    condition     = output.network == "projects/123456789012/global/networks/castell"
    error_message = "Vertex AI takes a network by the project's number"
  }
  assert {
    condition     = output.psc_attachment == null && length(google_project_iam_member.attachment_user) == 0
    error_message = "peering must leave nothing of psc"
  }
}

run "no_network_makes_none" {
  command = plan

  variables {
    network_access = "none"
  }
  assert {
    condition     = length(google_compute_network.this) == 0 && output.network == null && output.psc_attachment == null
    error_message = "none must make no network"
  }
}

run "two_ways_into_a_network_cannot_be_asked_for" {
  command = plan

  variables {
    network_access = "psc,peering"
  }
  expect_failures = [var.network_access]
}

run "the_settings_hold_what_submit_needs" {
  command = plan

  variables {
    labels = { team = "ml" }
  }
  assert {
    condition = toset(keys(yamldecode(output.settings).vertex)) == toset([
      "project", "location", "pipeline_root", "service_account", "psc_attachment",
      "kms_key", "tensorboard", "base_output_directory", "labels",
    ])
    error_message = "settings and `castell submit` must agree"
  }
  assert {
    condition     = output.pipeline_root == "gs://my-project-castell-pipelines/pipeline-root"
    error_message = "the pipeline root must lie in the bucket of runs"
  }
  assert {
    condition     = yamldecode(output.settings).vertex.labels == { app = "castell", team = "ml" }
    error_message = "labels must reach the runs"
  }
}

run "a_budget_only_with_a_billing_account" {
  command = plan

  variables {
    billing_account = "012345-6789AB-CDEF01"
    alert_emails    = ["oncall@example.com"]
  }
  assert {
    condition     = length(google_billing_budget.project) == 1 && length(google_billing_budget.project[0].threshold_rules) == 4
    error_message = "a billing account must make a budget with its thresholds"
  }
}

run "nothing_is_deleted_from_the_pipeline_root_when_told_so" {
  command = plan

  variables {
    pipeline_root_days = 0
  }
  assert {
    condition     = length(google_storage_bucket.pipelines.lifecycle_rule) == 3
    error_message = "0 days must leave the rules for uploads, old versions and tmp/ alone"
  }
}

run "mistakes_are_told_by_name" {
  command = plan

  variables {
    project            = "123456"
    location           = "eu"
    name               = "Castell"
    subnet_range       = "10.0.0.0/29"
    alert_emails       = ["user:a@example.com x"]
    billing_account    = "abc"
    pipeline_root_days = 1.5
    submitters         = ["someone@example.com"]
  }
  expect_failures = [
    var.project, var.location, var.name, var.subnet_range, var.alert_emails, var.billing_account,
    var.pipeline_root_days, var.submitters,
  ]
}
