# Money and runs that stand still.
#
# Runs: Vertex AI's metric `pipelinejob/duration` (gauge, seconds from creation to end, one series a
# run while it executes) says how long a run has been going on; a custom job has no such metric, and
# ours live inside runs. Failures: the log `pipeline_job_events`, which has every change of a run's
# state as jsonPayload.state. Sources:
# https://cloud.google.com/monitoring/api/metrics_gcp_a_b#gcp-aiplatform
# https://cloud.google.com/vertex-ai/docs/pipelines/logging

resource "google_monitoring_notification_channel" "email" {
  for_each = toset(var.alert_emails)

  display_name = "${var.name}: ${each.key}"
  type         = "email"
  labels       = { email_address = each.key }
  depends_on   = [google_project_service.this]
}

resource "google_monitoring_alert_policy" "stalled_run" {
  display_name = "${var.name}: a pipeline run takes more than ${var.max_run_hours} h"
  combiner     = "OR"
  severity     = "WARNING"

  conditions {
    display_name = "running for more than ${var.max_run_hours} h"

    condition_threshold {
      filter          = "resource.type = \"aiplatform.googleapis.com/PipelineJob\" AND metric.type = \"aiplatform.googleapis.com/pipelinejob/duration\""
      comparison      = "COMPARISON_GT"
      threshold_value = var.max_run_hours * 60 * 60
      duration        = "0s"

      aggregations {
        alignment_period   = "300s"
        per_series_aligner = "ALIGN_MAX"
      }
    }
  }

  # A series ends with its run; the alert then closes.
  alert_strategy {
    auto_close = "1800s"
  }

  documentation {
    mime_type = "text/markdown"
    content   = <<-EOT
      A pipeline run has been going on for longer than ${var.max_run_hours} hours (`max_run_hours`).
      `castell status RUN` says which task and why, `castell logs RUN` what it printed last.
      Training resumes from its last checkpoint: `castell cancel RUN` and submitting again lose little.
    EOT
  }

  notification_channels = [for channel in google_monitoring_notification_channel.email : channel.id]
  depends_on            = [google_project_service.this]
}

resource "google_monitoring_alert_policy" "failed_run" {
  display_name = "${var.name}: a pipeline run failed"
  combiner     = "OR"
  severity     = "ERROR"

  conditions {
    display_name = "PIPELINE_STATE_FAILED"

    condition_matched_log {
      filter = <<-EOT
        logName="projects/${var.project}/logs/aiplatform.googleapis.com%2Fpipeline_job_events"
        resource.type="aiplatform.googleapis.com/PipelineJob"
        jsonPayload.state="PIPELINE_STATE_FAILED"
      EOT
    }
  }

  # A policy on logs must have a limit.
  alert_strategy {
    auto_close = "1800s"
    notification_rate_limit {
      period = "300s"
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "`castell status RUN` names the failed task and the first line of its error."
  }

  notification_channels = [for channel in google_monitoring_notification_channel.email : channel.id]
  depends_on            = [google_project_service.this]
}

# Whoever applies this needs roles/billing.costsManager at the billing account.
resource "google_billing_budget" "project" {
  count = var.billing_account == "" ? 0 : 1

  billing_account = var.billing_account
  display_name    = "${var.project}: ${var.name}"

  budget_filter {
    projects        = ["projects/${data.google_project.this.number}"]
    calendar_period = "MONTH"
  }

  amount {
    specified_amount {
      units = tostring(var.monthly_budget)
    }
  }

  dynamic "threshold_rules" {
    for_each = [0.5, 0.9, 1.0]

    content {
      threshold_percent = threshold_rules.value
      spend_basis       = "CURRENT_SPEND"
    }
  }

  # Early enough to do something about it.
  threshold_rules {
    threshold_percent = 1.0
    spend_basis       = "FORECASTED_SPEND"
  }

  dynamic "all_updates_rule" {
    for_each = length(var.alert_emails) == 0 ? [] : [1]

    content {
      monitoring_notification_channels = [for channel in google_monitoring_notification_channel.email : channel.id]
    }
  }
}
