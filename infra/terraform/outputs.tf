# What `castell submit --target vertex` wants to know. The whole of it, as its settings file:
#   terraform output -raw settings > castell.yaml

locals {
  pipeline_root = "gs://${google_storage_bucket.pipelines.name}/${trimsuffix(local.pipeline_root_prefix, "/")}"

  # Vertex AI takes a network by the project's number, and nothing else.
  network = one([
    for connection in google_service_networking_connection.peering :
    "projects/${data.google_project.this.number}/global/networks/${google_compute_network.this[0].name}"
  ])
  psc_attachment = one(google_compute_network_attachment.jobs[*].id)

  vertex = {
    project               = var.project
    location              = var.location
    pipeline_root         = local.pipeline_root
    service_account       = google_service_account.this["pipeline"].email
    network               = local.network
    psc_attachment        = local.psc_attachment
    kms_key               = google_kms_crypto_key.this["vertex"].id
    tensorboard           = google_vertex_ai_tensorboard.this.name
    base_output_directory = "${local.pipeline_root}/tensorboard"
    labels                = local.labels
  }
}

output "project" {
  description = "Setting `project`."
  value       = local.vertex.project
}

output "location" {
  description = "Setting `location`."
  value       = local.vertex.location
}

output "pipeline_root" {
  description = "Setting `pipeline_root`."
  value       = local.vertex.pipeline_root
}

output "service_account" {
  description = "Setting `service_account`: what the steps run as."
  value       = local.vertex.service_account
}

output "network" {
  description = "Setting `network`; null unless network_access is peering."
  value       = local.vertex.network
}

output "psc_attachment" {
  description = "Setting `psc_attachment`; null unless network_access is psc."
  value       = local.vertex.psc_attachment
  # Nor may one start before the agent may join the attachment.
  depends_on = [google_project_iam_member.attachment_user]
}

output "kms_key" {
  description = "Setting `kms_key`."
  value       = local.vertex.kms_key
  # A run that starts before the agent may use the key fails.
  depends_on = [google_kms_crypto_key_iam_member.agent]
}

output "tensorboard" {
  description = "Setting `tensorboard`."
  value       = local.vertex.tensorboard
}

output "base_output_directory" {
  description = "Setting `base_output_directory`: TensorBoard reads logs from there."
  value       = local.vertex.base_output_directory
}

output "labels" {
  description = "Setting `labels`."
  value       = local.vertex.labels
}

output "settings" {
  description = "All of them as a settings file: terraform output -raw settings > castell.yaml"
  value       = yamlencode({ vertex = { for key, value in local.vertex : key => value if value != null } })
  depends_on  = [google_kms_crypto_key_iam_member.agent, google_project_iam_member.attachment_user]
}

output "data" {
  description = "Where data to train on goes; the steps may read it."
  value       = "gs://${google_storage_bucket.data.name}"
}

output "image" {
  description = "Where the image is pushed to: docker push IMAGE:0.1.0, then castell submit --image IMAGE:0.1.0."
  value       = "${var.location}-docker.pkg.dev/${var.project}/${google_artifact_registry_repository.images.repository_id}/castell"
}

output "service_accounts" {
  description = "All accounts by name: submitter (impersonate it to submit), pipeline, training, serving."
  value       = { for name, account in google_service_account.this : name => account.email }
}
