# Four service accounts, and all that each may do. Roles stand at the resource where its API allows
# that; Vertex AI's jobs, runs and schedules have no policies of their own, so there a custom role
# at the project holds no more than what is done (roles/aiplatform.user holds some 300 permissions).
# No keys: people and builds impersonate.
#
#   submitter  starts, watches, cancels and schedules runs: `castell submit|status|cancel|logs`
#   pipeline   runs the steps; starts the training job, registers and deploys models
#   training   the replicas of the training job
#   serving    the containers of deployed models

locals {
  accounts = {
    submitter = "Starts, watches and cancels pipeline runs"
    pipeline  = "Runs the steps of pipelines"
    training  = "Runs the replicas of training jobs"
    serving   = "Runs deployed models"
  }
  member = { for name, account in google_service_account.this : name => account.member }

  # Vertex AI uploads a job's curves in the name of the job's account.
  curves = [
    "aiplatform.tensorboardExperiments.create",
    "aiplatform.tensorboardExperiments.get",
    "aiplatform.tensorboardExperiments.list",
    "aiplatform.tensorboardExperiments.update",
    "aiplatform.tensorboardExperiments.write",
    "aiplatform.tensorboardRuns.batchCreate",
    "aiplatform.tensorboardRuns.create",
    "aiplatform.tensorboardRuns.get",
    "aiplatform.tensorboardRuns.list",
    "aiplatform.tensorboardRuns.update",
    "aiplatform.tensorboardRuns.write",
    "aiplatform.tensorboardTimeSeries.batchCreate",
    "aiplatform.tensorboardTimeSeries.batchRead",
    "aiplatform.tensorboardTimeSeries.create",
    "aiplatform.tensorboardTimeSeries.get",
    "aiplatform.tensorboardTimeSeries.list",
    "aiplatform.tensorboardTimeSeries.read",
    "aiplatform.tensorboardTimeSeries.update",
    "aiplatform.tensorboards.get",
  ]

  # Vertex AI permissions, by account.
  permissions = {
    submitter = [
      "aiplatform.customJobs.get",
      "aiplatform.customJobs.list",
      "aiplatform.pipelineJobs.cancel",
      "aiplatform.pipelineJobs.create",
      "aiplatform.pipelineJobs.get",
      "aiplatform.pipelineJobs.list",
      "aiplatform.schedules.create",
      "aiplatform.schedules.delete",
      "aiplatform.schedules.get",
      "aiplatform.schedules.list",
      "aiplatform.schedules.update",
      # Notes the run in the setting `experiment`.
      "aiplatform.contexts.addContextChildren",
      "aiplatform.contexts.create",
      "aiplatform.contexts.get",
      "aiplatform.contexts.list",
      "aiplatform.metadataStores.create",
      "aiplatform.metadataStores.get",
    ]
    # With the curves, as a training job for which no account is named runs as the pipeline.
    pipeline = concat(local.curves, [
      # The training job.
      "aiplatform.customJobs.cancel",
      "aiplatform.customJobs.create",
      "aiplatform.customJobs.get",
      "aiplatform.customJobs.list",
      # The model registry and endpoints.
      "aiplatform.models.get",
      "aiplatform.models.list",
      "aiplatform.models.update",
      "aiplatform.models.upload",
      "aiplatform.endpoints.create",
      "aiplatform.endpoints.deploy",
      "aiplatform.endpoints.get",
      "aiplatform.endpoints.list",
      "aiplatform.endpoints.undeploy",
      "aiplatform.endpoints.update",
      # Lineage and Experiments.
      "aiplatform.artifacts.create",
      "aiplatform.artifacts.get",
      "aiplatform.artifacts.list",
      "aiplatform.artifacts.update",
      "aiplatform.contexts.addContextArtifactsAndExecutions",
      "aiplatform.contexts.addContextChildren",
      "aiplatform.contexts.create",
      "aiplatform.contexts.get",
      "aiplatform.contexts.list",
      "aiplatform.contexts.queryContextLineageSubgraph",
      "aiplatform.contexts.update",
      "aiplatform.executions.addExecutionEvents",
      "aiplatform.executions.create",
      "aiplatform.executions.get",
      "aiplatform.executions.list",
      "aiplatform.executions.queryExecutionInputsAndOutputs",
      "aiplatform.executions.update",
      "aiplatform.metadataSchemas.get",
      "aiplatform.metadataSchemas.list",
      "aiplatform.metadataStores.get",
      # Models and endpoints are changed by operations that are waited for.
      "aiplatform.operations.list",
    ])
    training = local.curves
  }

  # Roles that only a project has.
  project_roles = {
    submitter = ["roles/logging.viewer"]
    pipeline  = ["roles/logging.logWriter"]
    training  = ["roles/logging.logWriter"]
    serving   = ["roles/logging.logWriter"]
  }

  # objectUser reads, writes and deletes objects and cannot change who may; legacyBucketReader adds
  # the look at the bucket itself that clients take before they use it.
  bucket_roles = {
    submitter = {
      pipelines = ["roles/storage.objectViewer", "roles/storage.legacyBucketReader"]
    }
    pipeline = {
      data      = ["roles/storage.objectViewer", "roles/storage.legacyBucketReader"]
      pipelines = ["roles/storage.objectUser", "roles/storage.legacyBucketReader"]
    }
    training = {
      data      = ["roles/storage.objectViewer", "roles/storage.legacyBucketReader"]
      pipelines = ["roles/storage.objectUser", "roles/storage.legacyBucketReader"]
    }
    serving = {
      pipelines = ["roles/storage.objectViewer"]
    }
  }

  # Who may start work in whose name. A step that starts the training job without naming an account
  # for it starts it in its own.
  acts_as = {
    submitter = ["pipeline"]
    pipeline  = ["pipeline", "training", "serving"]
  }
}

resource "google_service_account" "this" {
  for_each = local.accounts

  account_id   = "${var.name}-${each.key}"
  display_name = "${var.name} ${each.key}"
  description  = each.value
  depends_on   = [google_project_service.this]
}

resource "google_project_iam_custom_role" "this" {
  for_each = local.permissions

  role_id     = "${replace(var.name, "-", "_")}_${each.key}"
  title       = "${var.name}: ${each.key}"
  description = local.accounts[each.key]
  permissions = each.value
  depends_on  = [google_project_service.this]
}

resource "google_project_iam_member" "custom" {
  for_each = local.permissions

  project = var.project
  role    = google_project_iam_custom_role.this[each.key].id
  member  = local.member[each.key]
}

resource "google_project_iam_member" "predefined" {
  for_each = merge([
    for account, roles in local.project_roles : {
      for role in roles : "${account} ${role}" => { account = account, role = role }
    }
  ]...)

  project = var.project
  role    = each.value.role
  member  = local.member[each.value.account]
}

resource "google_storage_bucket_iam_member" "this" {
  for_each = merge(flatten([
    for account, buckets in local.bucket_roles : [
      for bucket, roles in buckets : {
        for role in roles : "${account} ${bucket} ${role}" => { account = account, bucket = bucket, role = role }
      }
    ]
  ])...)

  bucket = { data = google_storage_bucket.data.name, pipelines = google_storage_bucket.pipelines.name }[each.value.bucket]
  role   = each.value.role
  member = local.member[each.value.account]
}

# The submitter asks for the digest behind a tag. Nobody else here pulls: Vertex AI's own agent does.
resource "google_artifact_registry_repository_iam_member" "submitter" {
  repository = google_artifact_registry_repository.images.name
  location   = var.location
  role       = "roles/artifactregistry.reader"
  member     = local.member["submitter"]
}

resource "google_artifact_registry_repository_iam_member" "writer" {
  for_each = toset(var.image_writers)

  repository = google_artifact_registry_repository.images.name
  location   = var.location
  role       = "roles/artifactregistry.writer"
  member     = each.key
}

resource "google_service_account_iam_member" "acts_as" {
  for_each = merge([
    for account, others in local.acts_as : {
      for other in others : "${account} ${other}" => { account = account, other = other }
    }
  ]...)

  service_account_id = google_service_account.this[each.value.other].name
  role               = "roles/iam.serviceAccountUser"
  member             = local.member[each.value.account]
}

resource "google_service_account_iam_member" "submitter" {
  for_each = toset(var.submitters)

  service_account_id = google_service_account.this["submitter"].name
  role               = "roles/iam.serviceAccountTokenCreator"
  member             = each.key
}
