# What runs this: Terraform 1.9 (a validation may look at other variables) and Google's providers,
# of which 6.50 and 7 know all that is used here. `terraform init` writes .terraform.lock.hcl with
# exact versions and hashes: commit it beside your backend.tf.

terraform {
  required_version = ">= 1.9, < 2.0"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = ">= 6.50, < 8.0"
    }
    # Only for google_project_service_identity, which the other provider does not have.
    google-beta = {
      source  = "hashicorp/google-beta"
      version = ">= 6.50, < 8.0"
    }
  }
}

provider "google" {
  project = var.project
  region  = var.location

  # The budget API wants to know whose quota a user's own credentials spend.
  user_project_override = true
  billing_project       = var.project

  default_labels = local.labels
}

provider "google-beta" {
  project = var.project
  region  = var.location

  user_project_override = true
  billing_project       = var.project
}
