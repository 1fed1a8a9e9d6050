# A VPC of our own, and one of two ways for a job into it; `network_access` chooses.
#
# There is no Cloud NAT: a job's way to the internet goes through Google's side, not through this
# VPC, unless VPC Service Controls stand around the project, and then it should have none. The
# image installs nothing when it starts, so that nothing is missed.
# https://cloud.google.com/vertex-ai/docs/training/psc-i-egress

locals {
  with_network = var.network_access == "none" ? 0 : 1
  with_psc     = var.network_access == "psc" ? 1 : 0
  with_peering = var.network_access == "peering" ? 1 : 0
}

resource "google_compute_network" "this" {
  count = local.with_network

  name                    = var.name
  auto_create_subnetworks = false
  routing_mode            = "REGIONAL"
  depends_on              = [google_project_service.this]
}

resource "google_compute_subnetwork" "jobs" {
  count = local.with_network

  name                     = "${var.name}-jobs"
  network                  = google_compute_network.this[0].id
  region                   = var.location
  ip_cidr_range            = var.subnet_range
  private_ip_google_access = true

  log_config {
    aggregation_interval = "INTERVAL_10_MIN"
    flow_sampling        = 0.1
    metadata             = "INCLUDE_ALL_METADATA"
  }
}

# What the VPC refuses anyway, but written down, and logged. Replicas of a job talk to each other
# on Google's side; open here what of yours they must reach.
resource "google_compute_firewall" "no_ingress" {
  count = local.with_network

  name          = "${var.name}-no-ingress"
  network       = google_compute_network.this[0].id
  direction     = "INGRESS"
  priority      = 65000
  source_ranges = ["0.0.0.0/0"]

  deny {
    protocol = "all"
  }

  log_config {
    metadata = "INCLUDE_ALL_METADATA"
  }
}

# psc: jobs get an interface in the subnet. Vertex AI's agent adds its own projects to the list of
# those that may, which is why it may change the attachment and Terraform does not look.

resource "google_compute_network_attachment" "jobs" {
  count = local.with_psc

  name                  = "${var.name}-jobs"
  region                = var.location
  connection_preference = "ACCEPT_MANUAL"
  subnetworks           = [google_compute_subnetwork.jobs[0].id]

  lifecycle {
    ignore_changes = [producer_accept_lists]
  }
}

# Google's guide gives roles/compute.networkAdmin or just these three; an attachment has no IAM
# policy that Terraform could set, hence the project.
# https://cloud.google.com/vertex-ai/docs/general/vpc-psc-i-setup
resource "google_project_iam_custom_role" "attachment_user" {
  count = local.with_psc

  role_id     = "${replace(var.name, "-", "_")}_attachment_user"
  title       = "${var.name}: joins a network attachment"
  description = "What Vertex AI's agent needs to put a job's interface into the VPC."
  permissions = [
    "compute.networkAttachments.get",
    "compute.networkAttachments.update",
    "compute.regionOperations.get",
  ]
}

resource "google_project_iam_member" "attachment_user" {
  count = local.with_psc

  project = var.project
  role    = google_project_iam_custom_role.attachment_user[0].id
  member  = google_project_service_identity.agent["aiplatform.googleapis.com"].member
}

# peering: Google's network for our jobs is joined to the VPC (private services access).

resource "google_compute_global_address" "peering" {
  count = local.with_peering

  name          = "${var.name}-jobs"
  network       = google_compute_network.this[0].id
  purpose       = "VPC_PEERING"
  address_type  = "INTERNAL"
  prefix_length = var.peering_prefix_length
}

resource "google_service_networking_connection" "peering" {
  count = local.with_peering

  network                 = google_compute_network.this[0].id
  service                 = "servicenetworking.googleapis.com"
  reserved_peering_ranges = [google_compute_global_address.peering[0].name]
}
