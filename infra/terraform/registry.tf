# Where the image of all steps lies.
#
# A tag never moves: `castell submit` pins the digest behind it, and a digest that lost its tag
# would be cleaned up under a schedule or an endpoint that still needs it.

resource "google_artifact_registry_repository" "images" {
  repository_id = var.name
  location      = var.location
  format        = "DOCKER"
  description   = "Images of Castell's steps"
  kms_key_name  = google_kms_crypto_key.this["registry"].id

  docker_config {
    immutable_tags = true
  }

  # What a broken push left behind. Images with a tag are deleted by people.
  cleanup_policies {
    id     = "untagged"
    action = "DELETE"

    condition {
      tag_state  = "UNTAGGED"
      older_than = "${var.untagged_image_days * 24 * 60 * 60}s"
    }
  }

  vulnerability_scanning_config {
    enablement_config = "INHERITED"
  }

  depends_on = [google_kms_crypto_key_iam_member.agent]
}
