# All that can be chosen. Only `project` and `location` have no default.

variable "project" {
  description = "ID of the Google Cloud project; it must exist, with billing."
  type        = string

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project))
    error_message = "project must be a project ID (6 to 30 lower-case letters, digits, hyphens), not a number or a name."
  }
}

variable "location" {
  description = "Region of everything: buckets, images, keys, TensorBoard and jobs, such as europe-west4."
  type        = string

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.location))
    error_message = "location must be one region, such as europe-west4: neither a zone nor a multi-region has Vertex AI jobs and a key beside them."
  }
}

variable "name" {
  description = "First part of every name that is made."
  type        = string
  default     = "castell"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,15}[a-z0-9]$", var.name))
    error_message = "name must be 3 to 17 lower-case letters, digits and hyphens: a service account's ID ends at 30."
  }
}

variable "labels" {
  description = "Labels of all resources and of the runs that `castell submit` starts."
  type        = map(string)
  default     = {}

  validation {
    condition = alltrue([
      for key, value in var.labels :
      can(regex("^[a-z][a-z0-9_-]{0,62}$", key)) && can(regex("^[a-z0-9_-]{0,63}$", value))
    ])
    error_message = "labels take lower-case letters, digits, _ and -, at most 63, and keys begin with a letter."
  }
}

# Who may do what

variable "submitters" {
  description = "Who may act as the submitter, such as [\"group:ml@example.com\"]."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for member in var.submitters : can(regex("^(user|group|serviceAccount|principal|principalSet):", member))])
    error_message = "each of submitters must begin with user:, group:, serviceAccount:, principal: or principalSet:."
  }
}

variable "image_writers" {
  description = "Who may push images, such as a build's service account."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for member in var.image_writers : can(regex("^(user|group|serviceAccount|principal|principalSet):", member))])
    error_message = "each of image_writers must begin with user:, group:, serviceAccount:, principal: or principalSet:."
  }
}

# Network

variable "network_access" {
  description = "How jobs reach your VPC: psc (an interface in it, by network attachment), peering (private services access) or none. Vertex AI refuses a job that asks for two, so there is one variable."
  type        = string
  default     = "psc"

  validation {
    condition     = contains(["psc", "peering", "none"], var.network_access)
    error_message = "network_access must be psc, peering or none."
  }
}

variable "subnet_range" {
  description = "Addresses of the subnet in your VPC; with psc each replica of a job takes one."
  type        = string
  default     = "10.60.0.0/20"

  validation {
    condition     = can(cidrnetmask(var.subnet_range)) && try(tonumber(split("/", var.subnet_range)[1]) <= 28, false)
    error_message = "subnet_range must be an IPv4 range such as 10.60.0.0/20, /28 at the smallest."
  }
}

variable "peering_prefix_length" {
  description = "With peering: size of the range that Google's side takes for jobs; too small a range lets jobs wait."
  type        = number
  default     = 16

  validation {
    condition     = var.peering_prefix_length >= 8 && var.peering_prefix_length <= 21
    error_message = "peering_prefix_length must be 8 to 21: a job takes a block of addresses, and /22 holds few."
  }
}

# What is kept, and for how long

variable "pipeline_root_days" {
  description = "Days after which artifacts of pipeline runs are deleted; 0 keeps them. Models in the registry are copies."
  type        = number
  default     = 90

  validation {
    condition     = var.pipeline_root_days >= 0 && floor(var.pipeline_root_days) == var.pipeline_root_days
    error_message = "pipeline_root_days must be a whole number, 0 or more."
  }
}

variable "temporary_days" {
  description = "Days after which objects under tmp/ are deleted."
  type        = number
  default     = 7

  validation {
    condition     = var.temporary_days >= 1 && floor(var.temporary_days) == var.temporary_days
    error_message = "temporary_days must be a whole number, 1 or more."
  }
}

variable "noncurrent_days" {
  description = "Days that an overwritten or deleted object can be brought back. Training rewrites checkpoints: each day costs."
  type        = number
  default     = 7

  validation {
    condition     = var.noncurrent_days >= 1 && floor(var.noncurrent_days) == var.noncurrent_days
    error_message = "noncurrent_days must be a whole number, 1 or more."
  }
}

variable "untagged_image_days" {
  description = "Days after which an image that has no tag is deleted."
  type        = number
  default     = 30

  validation {
    condition     = var.untagged_image_days >= 1 && floor(var.untagged_image_days) == var.untagged_image_days
    error_message = "untagged_image_days must be a whole number, 1 or more."
  }
}

# Keys

variable "key_protection" {
  description = "Where keys live: SOFTWARE or HSM."
  type        = string
  default     = "SOFTWARE"

  validation {
    condition     = contains(["SOFTWARE", "HSM"], var.key_protection)
    error_message = "key_protection must be SOFTWARE or HSM."
  }
}

# Money and alarms

variable "billing_account" {
  description = "Billing account of the budget, such as 012345-6789AB-CDEF01; empty: no budget."
  type        = string
  default     = ""

  validation {
    condition     = var.billing_account == "" || can(regex("^[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}$", var.billing_account))
    error_message = "billing_account must look like 012345-6789AB-CDEF01, or be empty."
  }
}

variable "monthly_budget" {
  description = "Budget of a month, in the billing account's currency. It warns; it stops nothing."
  type        = number
  default     = 1000

  validation {
    condition     = var.monthly_budget >= 1 && floor(var.monthly_budget) == var.monthly_budget
    error_message = "monthly_budget must be a whole number, 1 or more."
  }
}

variable "alert_emails" {
  description = "Who is written to about stalled runs, failed runs and the budget."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for email in var.alert_emails : can(regex("^[^@ ]+@[^@ ]+$", email))])
    error_message = "each of alert_emails must be an address, without `user:` before it."
  }

  validation {
    condition     = length(var.alert_emails) <= 5
    error_message = "alert_emails takes 5 at most, as a budget does: name a group."
  }
}

variable "max_run_hours" {
  description = "Hours after which a pipeline run counts as stalled."
  type        = number
  default     = 24

  validation {
    condition     = var.max_run_hours > 0
    error_message = "max_run_hours must be above 0."
  }
}
