"""A KFP API server, v2beta1: experiments, runs, recurring runs, uploads, logs.

A pipeline must parse as KFP's own message. A test scripts what a run goes through; each look at it
is one step further.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2

from tests.doubles.server import Asked, Refused, Server

API = "/apis/v2beta1"


def task(
    name: str, state: str, number: int = 1, *, error: str = "", pod: str = ""
) -> dict[str, Any]:
    """A PipelineTaskDetail."""
    detail: dict[str, Any] = {
        "task_id": str(number), "display_name": name, "state": state,
        "create_time": f"2026-01-01T00:00:{number:02}Z", "pod_name": pod,
    }  # fmt: skip
    return {**detail, "error": {"code": 9, "message": error}} if error else detail


@dataclass
class Kfp(Server):
    """`script`: what a run looks like at each look; `logs`: text by pod."""

    script: list[dict[str, Any]] = field(default_factory=lambda: [{"state": "RUNNING"}])
    experiments: list[dict[str, Any]] = field(default_factory=list)
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    looks: dict[str, int] = field(default_factory=dict)
    recurring: dict[str, dict[str, Any]] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.routes = [
            ("GET", f"{API}/healthz", lambda asked: {"multi_user": False}),
            ("GET", f"{API}/experiments", self.find_experiments),
            ("POST", f"{API}/experiments", self.create_experiment),
            ("POST", f"{API}/runs", self.create_run),
            ("GET", f"{API}/runs/([^/:]+)", self.get_run),
            ("POST", f"{API}/runs/([^/:]+):terminate", self.terminate),
            ("POST", f"{API}/recurringruns", self.create_recurring),
            ("DELETE", f"{API}/recurringruns/([^/:]+)", self.delete_recurring),
            ("POST", f"{API}/pipelines/upload", self.upload),
            ("GET", "/apis/v1alpha1/runs/([^/]+)/nodes/([^/]+)/log", self.read_log),
        ]

    def error(self, refused: Refused) -> Any:
        return {"error": refused.message, "code": refused.status, "message": refused.message}

    def find_experiments(self, asked: Asked) -> Any:
        (predicate,) = json.loads(asked.query["filter"])["predicates"]
        wanted = predicate["stringValue"]
        return {"experiments": [e for e in self.experiments if e["display_name"] == wanted]}

    def create_experiment(self, asked: Asked) -> Any:
        made = {**asked.body, "experiment_id": new_id(len(self.experiments))}
        self.experiments.append(made)
        return made

    def create_run(self, asked: Asked) -> Any:
        checked(asked.body, self.experiments)
        run_id = new_id(100 + len(self.runs))
        self.runs[run_id] = {**asked.body, "run_id": run_id}
        self.looks[run_id] = 0
        return {**self.runs[run_id], "state": "PENDING"}

    def get_run(self, asked: Asked, run_id: str) -> Any:
        if run_id not in self.runs:
            raise Refused(404, f"run {run_id} not found")
        moment = self.script[min(self.looks[run_id], len(self.script) - 1)]
        self.looks[run_id] += 1
        found = self.runs[run_id]
        seen = {"state": moment["state"], "run_details": {"task_details": moment.get("tasks", [])}}
        if "error" in moment:
            seen["error"] = {"code": 13, "message": moment["error"]}
        return {**seen, **found}

    def terminate(self, asked: Asked, run_id: str) -> Any:
        if run_id not in self.runs:
            raise Refused(404, f"run {run_id} not found")
        self.runs[run_id]["state"] = "CANCELED"
        return {}

    def create_recurring(self, asked: Asked) -> Any:
        checked(asked.body, self.experiments)
        cron = asked.body["trigger"]["cron_schedule"]["cron"]
        if len(cron.split()) != 6:
            raise Refused(400, f"expected 6 fields, found {len(cron.split())}: {cron}")
        made = {**asked.body, "recurring_run_id": new_id(200 + len(self.recurring))}
        self.recurring[made["recurring_run_id"]] = made
        return made

    def delete_recurring(self, asked: Asked, recurring_id: str) -> Any:
        if self.recurring.pop(recurring_id, None) is None:
            raise Refused(404, f"recurring run {recurring_id} not found")
        return {}

    def upload(self, asked: Asked) -> Any:
        return {"pipeline_id": new_id(300), "display_name": asked.query.get("name", "")}

    def read_log(self, asked: Asked, run_id: str, pod: str) -> str:
        if pod not in self.logs:
            raise Refused(404, f"no log of {pod}")
        return self.logs[pod]


def checked(body: dict[str, Any], experiments: list[dict[str, Any]]) -> None:
    """Refuses a pipeline that is none, and an experiment that is not there."""
    try:
        spec = body["pipeline_spec"]
        json_format.ParseDict(spec.get("pipeline_spec", spec), pipeline_spec_pb2.PipelineSpec())
    except (KeyError, json_format.ParseError) as error:
        raise Refused(400, f"invalid pipeline: {error}") from None
    if body["experiment_id"] not in [e["experiment_id"] for e in experiments]:
        raise Refused(404, f"experiment {body['experiment_id']} not found")


def new_id(number: int) -> str:
    return str(uuid.UUID(int=number + 1))
