"""KFP through its own client: runs, recurring runs, what became of them."""

from __future__ import annotations

import contextlib
import io
import logging
import re
import ssl
import sys
import tempfile
import warnings
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from components.reach import Unreachable, is_passing, told_if_slow, without_password
from pipelines.submit.platform import Request, Run, Sent, State, Task, check_host
from trainer.errors import UsageError

# What an HTTP header may hold of a token.
_TOKEN = re.compile(r"[!-~]*")
# What an error shows of an answer, which may be a web page.
_SAID = 300
_STATES: dict[str, State] = {
    "RUNTIME_STATE_UNSPECIFIED": "pending",
    "PENDING": "pending",
    "RUNNING": "running",
    "PAUSED": "running",
    "CANCELING": "running",
    "SUCCEEDED": "succeeded",
    "CACHED": "succeeded",
    "FAILED": "failed",
    "CANCELED": "cancelled",
    "SKIPPED": "skipped",
}


class KfpPlatform:
    """A KFP API server, reached as `KfpSettings` say."""

    def __init__(self, settings: Any) -> None:
        check_host(settings.host)
        if not _TOKEN.fullmatch(settings.token):
            raise UsageError(
                "token: holds a space, a line break or a letter that no token has (it is not shown)"
            )
        self._settings = settings
        _check_tls(settings)
        self._host = without_password(settings.host.rstrip("/"))
        self._console = without_password((settings.console or settings.host).rstrip("/"))
        with _asking(self._host), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # "only works with 2.0 and later"
            from pipelines.submit.kfp_client import Client

            self._client = Client(
                host=settings.host.rstrip("/"),
                existing_token=settings.token or None,
                ssl_ca_cert=settings.tls_ca or None,
                verify_ssl=settings.verify_tls,
            )

    def submit(self, request: Request) -> Sent:
        """Starts a run in the experiment of the settings."""
        with self._package(request) as (file, experiment), _asking(self._host):
            made = self._client.run_pipeline(
                experiment,
                job_name=_name(request),
                pipeline_package_path=file,
                params=dict(request.parameters),
                pipeline_root=self._settings.pipeline_root or None,
                service_account=self._settings.service_account or None,
            )
            _expect(made.run_id)
        return Sent(made.run_id, self._link(f"runs/details/{made.run_id}"))

    def schedule(self, request: Request, cron: str) -> Sent:
        """Makes a recurring run; one that is late is not made up for."""
        with self._package(request) as (file, experiment), _asking(self._host):
            made = self._client.create_recurring_run(
                experiment,
                job_name=_name(request),
                cron_expression=cron,
                no_catchup=True,
                params=dict(request.parameters),
                pipeline_package_path=file,
                pipeline_root=self._settings.pipeline_root or None,
                service_account=self._settings.service_account or None,
            )
            _expect(made.recurring_run_id)
        return Sent(
            made.recurring_run_id, self._link(f"recurringrun/details/{made.recurring_run_id}")
        )

    def unschedule(self, schedule_id: str) -> None:
        """Deletes a recurring run; runs that have begun go on."""
        with _asking(self._host, schedule_id):
            self._client.delete_recurring_run(schedule_id)

    def run(self, run_id: str) -> Run:
        """Returns the state of a run; tasks without a pod (the DAG itself) are left out."""
        with _asking(self._host, run_id):
            found = self._client.get_run(run_id)
            _expect(found.run_id)
        details = found.run_details.task_details if found.run_details else None
        tasks = tuple(
            Task(task.display_name, _STATES.get(task.state, "pending"), _message(task.error))
            for task in sorted(details or (), key=lambda task: str(task.create_time))
            if task.state and not _is_driver(task)
        )
        return Run(
            run_id, found.display_name, _STATES.get(found.state, "pending"),
            self._link(f"runs/details/{run_id}"), tasks, _message(found.error),
        )  # fmt: skip

    def cancel(self, run_id: str) -> None:
        """Terminates the run."""
        with _asking(self._host, run_id):
            self._client.terminate_run(run_id)

    def logs(self, run_id: str, step: str) -> Iterator[str]:
        """Yields the lines of the step's pods."""
        with _asking(self._host, run_id):
            found = self._client.get_run(run_id)
            _expect(found.run_id)
        details = (found.run_details.task_details if found.run_details else None) or ()
        pods = [
            pod.pod_name
            for task in details
            if task.display_name == step
            for pod in (task, *(task.child_tasks or ()))
            if pod.pod_name
        ]
        for pod in dict.fromkeys(pods):
            # No method of the client has it, its connection does.
            with _asking(self._host, run_id):
                text, _, _ = self._client.runs.api_client.call_api(
                    f"/apis/v1alpha1/runs/{run_id}/nodes/{pod}/log", "GET", response_type="str",
                    auth_settings=["Bearer"],
                )  # fmt: skip
            yield from text.splitlines()

    @contextlib.contextmanager
    def _package(self, request: Request) -> Iterator[tuple[str, str]]:
        """Yields a file with the pipeline, and the experiment's id, made if it is not there."""
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory, "pipeline.yaml")
            request.compiled.write(file)
            with _asking(self._host):
                experiment = self._client.create_experiment(
                    self._settings.experiment, namespace=self._settings.namespace or None
                )
                _expect(experiment.experiment_id)
            yield str(file), experiment.experiment_id

    def _link(self, place: str) -> str:
        return f"{self._console}/#/{place}"


def _check_tls(settings: Any) -> None:
    """Refuses an authority that is none, and says so if certificates are not checked."""
    if not settings.verify_tls:
        print("castell: verify_tls is off: anybody may answer for KFP", file=sys.stderr)
    if settings.tls_ca:
        try:
            ssl.create_default_context(cafile=settings.tls_ca)
        except OSError as error:
            reason = "no certificate" if isinstance(error, ssl.SSLError) else error.strerror
            raise UsageError(f"tls_ca ({settings.tls_ca}): {reason}") from None


def _name(request: Request) -> str:
    return request.name or f"{request.compiled.name} {datetime.now():%Y-%m-%d %H:%M:%S}"


def _expect(made: str | None) -> None:
    """Refuses an answer without the id of what was asked for."""
    from pipelines.submit.kfp_client import NoAnswerOfKfp

    if not made:
        raise NoAnswerOfKfp


def _message(error: Any) -> str:
    return str(error.message) if error and error.message else ""


def _is_driver(task: Any) -> bool:
    return str(task.display_name).endswith("-driver") or task.display_name == "root"


@contextlib.contextmanager
def _asking(host: str, run_id: str = "") -> Iterator[None]:
    """Turns what the client raises into one line, and keeps what it prints to itself."""
    import kfp_server_api
    import urllib3

    from pipelines.submit.kfp_client import NoAnswerOfKfp

    # It warns of every try to connect.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    try:
        with contextlib.redirect_stdout(io.StringIO()), told_if_slow(f"KFP at {host}"):
            yield
    except kfp_server_api.ApiException as error:
        if error.status == 404 and run_id:
            raise UsageError(f"{run_id}: KFP at {host} knows no such run or schedule") from None
        said = " ".join(str(error.body or error.reason).split())
        said = said if len(said) <= _SAID else f"{said[:_SAID]}…"
        if error.status in (401, 403):
            said += "; look at the token (--token, CASTELL_KFP_TOKEN) and what it may do"
        kind = Unreachable if is_passing(error.status) else UsageError
        raise kind(f"KFP at {host} refused it ({error.status}): {said}") from None
    except (NoAnswerOfKfp, UnicodeDecodeError):
        raise UsageError(
            f"host ({host}): answers, but not as the KFP API does: is it behind a login? a token "
            "(--token, CASTELL_KFP_TOKEN) or another address may get past it"
        ) from None
    except (urllib3.exceptions.HTTPError, OSError) as error:
        reason = getattr(error, "reason", None) or error
        raise Unreachable(f"KFP at {host} cannot be reached: {reason}") from None
