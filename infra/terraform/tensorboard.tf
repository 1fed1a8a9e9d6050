# What the curves of all runs are kept in.

resource "google_vertex_ai_tensorboard" "this" {
  display_name = var.name
  description  = "Curves of Castell's training runs"
  region       = var.location

  encryption_spec {
    kms_key_name = google_kms_crypto_key.this["vertex"].id
  }

  depends_on = [google_kms_crypto_key_iam_member.agent]
}
