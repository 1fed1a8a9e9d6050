# Keys of our own for all that lies still: one a service, so that a grant reaches no further.

locals {
  # Who encrypts with which key: the service's agent, never a person and none of our accounts.
  key_users = {
    storage  = data.google_storage_project_service_account.agent.member
    registry = google_project_service_identity.agent["artifactregistry.googleapis.com"].member
    vertex   = google_project_service_identity.agent["aiplatform.googleapis.com"].member
  }
}

# A key ring can never be deleted, nor its name used again.
resource "google_kms_key_ring" "this" {
  name       = "${var.name}-${var.location}"
  location   = var.location
  depends_on = [google_project_service.this]
}

resource "google_kms_crypto_key" "this" {
  for_each = toset(["storage", "registry", "vertex"])

  name     = each.key
  key_ring = google_kms_key_ring.this.id
  purpose  = "ENCRYPT_DECRYPT"
  # 90 days, as CIS asks; older versions go on decrypting. Written out: scanners do no sums.
  rotation_period = "7776000s"
  # 30 days in which a mistake can be taken back.
  destroy_scheduled_duration = "2592000s"

  version_template {
    algorithm        = "GOOGLE_SYMMETRIC_ENCRYPTION"
    protection_level = var.key_protection
  }

  lifecycle {
    # With it would go all that it encrypts.
    prevent_destroy = true
  }
}

resource "google_kms_crypto_key_iam_member" "agent" {
  for_each = local.key_users

  crypto_key_id = google_kms_crypto_key.this[each.key].id
  role          = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
  member        = each.value
}
