# Two buckets: `data` is what people put in, `pipelines` is what runs make.
#
# Both keep older versions for some days instead of soft-deleting: with both, every overwritten
# checkpoint would be paid for twice.

locals {
  bucket_names = {
    data      = "${var.project}-${var.name}-data"
    pipelines = "${var.project}-${var.name}-pipelines"
  }
  pipeline_root_prefix = "pipeline-root/"
  temporary_prefix     = "tmp/"

  # Prefix → days after which what lies under it is deleted.
  deleted_after = merge(
    { (local.temporary_prefix) = var.temporary_days },
    var.pipeline_root_days == 0 ? {} : { (local.pipeline_root_prefix) = var.pipeline_root_days },
  )
}

resource "google_storage_bucket" "data" {
  #checkov:skip=CKV_GCP_62: who read what is in Cloud Audit Logs (turn on data access); bucket logs are best effort
  name                        = local.bucket_names.data
  location                    = var.location
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"

  versioning {
    enabled = true
  }

  soft_delete_policy {
    retention_duration_seconds = 0
  }

  encryption {
    default_kms_key_name = google_kms_crypto_key.this["storage"].id
  }

  lifecycle_rule {
    action {
      type = "AbortIncompleteMultipartUpload"
    }
    condition {
      age = 1
    }
  }

  lifecycle_rule {
    action {
      type = "Delete"
    }
    condition {
      days_since_noncurrent_time = var.noncurrent_days
      with_state                 = "ARCHIVED"
    }
  }

  lifecycle {
    prevent_destroy = true
  }

  depends_on = [google_kms_crypto_key_iam_member.agent]
}

resource "google_storage_bucket" "pipelines" {
  #checkov:skip=CKV_GCP_62: who read what is in Cloud Audit Logs (turn on data access); bucket logs are best effort
  name                        = local.bucket_names.pipelines
  location                    = var.location
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"

  versioning {
    enabled = true
  }

  soft_delete_policy {
    retention_duration_seconds = 0
  }

  encryption {
    default_kms_key_name = google_kms_crypto_key.this["storage"].id
  }

  lifecycle_rule {
    action {
      type = "AbortIncompleteMultipartUpload"
    }
    condition {
      age = 1
    }
  }

  lifecycle_rule {
    action {
      type = "Delete"
    }
    condition {
      days_since_noncurrent_time = var.noncurrent_days
      with_state                 = "ARCHIVED"
    }
  }

  # In a versioned bucket this makes an object noncurrent; the rule above then takes it.
  dynamic "lifecycle_rule" {
    for_each = local.deleted_after

    content {
      action {
        type = "Delete"
      }
      condition {
        age            = lifecycle_rule.value
        matches_prefix = [lifecycle_rule.key]
        with_state     = "LIVE"
      }
    }
  }

  depends_on = [google_kms_crypto_key_iam_member.agent]
}
