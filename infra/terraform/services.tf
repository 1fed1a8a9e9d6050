# The project: its number, the APIs, and the agents in whose name Google's services act.

locals {
  labels = merge({ app = var.name }, var.labels)

  services = toset([
    "aiplatform.googleapis.com",
    "artifactregistry.googleapis.com",
    "billingbudgets.googleapis.com",
    "cloudkms.googleapis.com",
    "cloudresourcemanager.googleapis.com",
    "compute.googleapis.com",
    "iam.googleapis.com",
    "iamcredentials.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "servicenetworking.googleapis.com",
    "storage.googleapis.com",
  ])
}

data "google_project" "this" {
  project_id = var.project
}

resource "google_project_service" "this" {
  for_each = local.services

  service = each.key
  # Others in the project may need it after we have gone.
  disable_on_destroy = false
}

# An agent comes into being with its service's first use; a grant to one that is not there fails.
resource "google_project_service_identity" "agent" {
  provider = google-beta
  for_each = toset(["aiplatform.googleapis.com", "artifactregistry.googleapis.com"])

  service    = each.key
  depends_on = [google_project_service.this]
}

data "google_storage_project_service_account" "agent" {
  depends_on = [google_project_service.this]
}
