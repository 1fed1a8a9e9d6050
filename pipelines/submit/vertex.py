"""Vertex AI through Google's own client: pipeline jobs, schedules, what became of them."""

from __future__ import annotations

import contextlib
import re
import secrets
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from components.google_cloud import asking, connect, flat, is_nameless
from pipelines.submit.choices import is_no_quota
from pipelines.submit.platform import Request, Run, Sent, State, Task
from trainer.errors import UsageError

CONSOLE = "https://console.cloud.google.com/vertex-ai/locations"
LOGGING = "https://logging.googleapis.com"
LOG_PAGE = 1000
_RUN_STATES: dict[str, State] = {
    "QUEUED": "pending",
    "PENDING": "pending",
    "RUNNING": "running",
    "SUCCEEDED": "succeeded",
    "FAILED": "failed",
    "CANCELLING": "running",
    "CANCELLED": "cancelled",
    "PAUSED": "running",
}
_TASK_STATES: dict[str, State] = {
    "PENDING": "pending",
    "RUNNING": "running",
    "SUCCEEDED": "succeeded",
    "CANCEL_PENDING": "running",
    "CANCELLING": "running",
    "CANCELLED": "cancelled",
    "FAILED": "failed",
    "SKIPPED": "skipped",
    "NOT_TRIGGERED": "skipped",
}


class VertexPlatform:
    """Vertex AI in one project and location, as `VertexSettings` say."""

    def __init__(self, settings: Any) -> None:
        if not settings.project:
            raise UsageError("project is not set: --project, CASTELL_VERTEX_PROJECT or the file")
        self._settings = settings
        self._aiplatform = connect(settings.project, settings.location, settings.api_endpoint)

    def submit(self, request: Request) -> Sent:
        """Starts a pipeline job."""
        s = self._settings
        with self._job(request) as job, asking():
            try:
                job.submit(
                    service_account=s.service_account or None,
                    network=s.network or None,
                    reserved_ip_ranges=list(s.reserved_ip_ranges) or None,
                    experiment=s.experiment or None,
                )
                job.resource_name  # noqa: B018 - raises if the answer has none
            except RuntimeError as error:  # the client's word for trouble with the experiment
                if is_nameless(error):
                    raise
                said = f"experiment {s.experiment}: {flat(error.__cause__ or error)}"
                if not str(error).startswith("projects/"):
                    raise UsageError(said) from None
                # The run is there already, and goes on.
                print(f"castell: {said}", file=sys.stderr)
        return Sent(job.job_id, self._link(f"runs/{job.job_id}"))

    def schedule(self, request: Request, cron: str) -> Sent:
        """Makes a schedule of pipeline jobs, one at a time."""
        s = self._settings
        if s.reserved_ip_ranges:
            raise UsageError("--cron: Vertex's client leaves reserved_ip_ranges out of schedules")
        with self._job(request) as job, asking():
            made = job.create_schedule(
                cron=cron,
                display_name=request.name or request.compiled.name,
                service_account=s.service_account or None,
                network=s.network or None,
            )
            name = made.resource_name.rpartition("/")[2]
        return Sent(name, self._link(f"schedules/{name}"))

    def unschedule(self, schedule_id: str) -> None:
        """Deletes a schedule; runs that have begun go on."""
        with asking(schedule_id):
            self._aiplatform.PipelineJobSchedule.get(schedule_id).delete()

    def run(self, run_id: str) -> Run:
        """Returns the state of a pipeline job; the DAGs around its tasks are left out."""
        found = self._found(run_id)
        dags = {task.parent_task_id for task in found.job_detail.task_details}
        tasks = tuple(
            Task(
                task.task_name,
                _TASK_STATES.get(task.state.name, "pending"),
                self._error(task) if task.state.name == "FAILED" else "",
                task.state.name == "FAILED" and is_no_quota(task.error.code, task.error.message),
            )
            for task in sorted(found.job_detail.task_details, key=lambda task: task.task_id)
            if task.task_id not in dags
        )
        state = _RUN_STATES.get(found.state.name.removeprefix("PIPELINE_STATE_"), "pending")
        short = found.name.rpartition("/")[2]
        return Run(
            short, found.display_name, state, self._link(f"runs/{short}"), tasks,
            found.error.message,
        )  # fmt: skip

    def cancel(self, run_id: str) -> None:
        """Asks for the end of a pipeline job; its training jobs are cancelled with it."""
        with asking(run_id):
            self._aiplatform.PipelineJob.get(run_id).cancel()

    def logs(self, run_id: str, step: str) -> Iterator[str]:
        """Yields what Cloud Logging has of the step's jobs."""
        for task in self._found(run_id).job_detail.task_details:
            if task.task_name == step:
                yield from self._lines(_jobs(task))

    def _found(self, run_id: str) -> Any:
        with asking(run_id):
            found = self._aiplatform.PipelineJob.get(run_id).gca_resource
            if "/pipelineJobs/" not in found.name:
                raise KeyError(found.name)
            return found

    @contextlib.contextmanager
    def _job(self, request: Request) -> Iterator[Any]:
        if request.compiled.platform:
            raise UsageError(
                f"{request.compiled.file}: holds settings of Kubernetes, which Vertex refuses; "
                "compile it with --target vertex"
            )
        s = self._settings
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory, "pipeline.yaml")
            request.compiled.write(file)
            with asking():
                job = self._aiplatform.PipelineJob(
                    display_name=request.name or request.compiled.name,
                    template_path=str(file),
                    job_id=_job_id(request.compiled.name),
                    pipeline_root=s.pipeline_root or None,
                    parameter_values=dict(request.parameters),
                    encryption_spec_key_name=s.kms_key or None,
                    labels=s.labels or None,
                )
            yield job

    def _error(self, task: Any) -> str:
        """Returns the step's own last word, if the logs have it, else what Vertex says."""
        said = str(task.error.message)
        with contextlib.suppress(UsageError):
            for line in self._lines(_jobs(task), 'textPayload:"castell: error:"'):
                said = line
        return said

    def _lines(self, jobs: list[str], more: str = "") -> Iterator[str]:
        """Yields the logged lines of jobs, oldest first."""
        if not jobs:
            return
        from google.auth.transport.requests import AuthorizedSession

        config = self._aiplatform.initializer.global_config
        session = AuthorizedSession(config.credentials)  # type: ignore[no-untyped-call]
        numbers = " OR ".join(f'resource.labels.job_id="{j.rpartition("/")[2]}"' for j in jobs)
        body = {
            "resourceNames": [f"projects/{self._settings.project}"],
            "filter": f'resource.type="ml_job" AND ({numbers})' + (f" AND {more}" if more else ""),
            "orderBy": "timestamp asc",
            "pageSize": LOG_PAGE,
        }
        url = f"{self._settings.logging_endpoint or LOGGING}/v2/entries:list"
        token = ""
        while True:
            with asking():
                answer = session.post(url, json={**body, **({"pageToken": token} if token else {})})
            if answer.status_code != 200:
                raise UsageError(
                    f"Cloud Logging refused it ({answer.status_code}): {answer.reason}"
                )
            try:
                page = dict(answer.json())
            except (ValueError, TypeError):
                raise UsageError(f"{url} answers, but not as Cloud Logging does") from None
            for entry in page.get("entries", ()):
                payload = entry.get("jsonPayload", {})
                yield str(entry.get("textPayload") or payload.get("message", "")).rstrip("\n")
            token = page.get("nextPageToken", "")
            if not token:
                return

    def _link(self, place: str) -> str:
        s = self._settings
        return f"{CONSOLE}/{s.location}/pipelines/{place}?project={s.project}"


def _job_id(name: str) -> str:
    """Returns an id that no other run has; the client's own has seconds only."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return f"{plain}-{datetime.now():%Y%m%d%H%M%S}-{secrets.token_hex(2)}"


def _jobs(task: Any) -> list[str]:
    """Returns the jobs that a task ran as; the last is the one that it launched, if any."""
    detail = task.executor_detail
    return [j for j in (detail.container_detail.main_job, detail.custom_job_detail.job) if j]
