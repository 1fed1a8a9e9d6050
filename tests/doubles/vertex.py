"""Vertex AI's REST API for one project: jobs, models, endpoints, schedules; and Cloud Logging.

Bodies must parse as Google's own messages. A test scripts what a pipeline job goes through; each
look at it is one step further. Nobody may look at buckets (403), as many accounts may not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from google.cloud import aiplatform_v1 as api
from google.protobuf import json_format

from tests.doubles.server import Asked, Refused, Server

# What the platform adds to a model that a container serves.
SERVABLE = {"versionId": "1", "supportedDeploymentResourcesTypes": ["DEDICATED_RESOURCES"]}
PARENT = r"/v1/(projects/[^/]+/locations/[^/]+)"
CONTEXT = r"/v1/(projects/[^/]+/locations/[^/]+/metadataStores/default/contexts/[^/:]+)"
NAME = r"/v1/(projects/[^/]+/locations/[^/]+/{kind}/[^/:]+)"


def task(
    name: str, state: str, number: int = 1, *, error: str = "", job: str = ""
) -> dict[str, Any]:
    """A PipelineTaskDetail."""
    detail: dict[str, Any] = {"taskId": number, "taskName": name, "state": state}
    if error:
        detail["error"] = {"code": 9, "message": error}
    if job:
        detail["executorDetail"] = {"containerDetail": {"mainJob": job}}
    return detail


@dataclass
class Vertex(Server):
    """`script`: what a pipeline job looks like at each look, from its creation on.

    `scripts`: one for each job, in the order of their creation.
    """

    script: list[dict[str, Any]] = field(default_factory=lambda: [{"state": "RUNNING"}])
    scripts: list[list[dict[str, Any]]] = field(default_factory=list)
    resources: dict[str, dict[str, Any]] = field(default_factory=dict)
    looks: dict[str, int] = field(default_factory=dict)
    log: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        def name(kind: str) -> str:
            return NAME.format(kind=kind)

        self.routes = [
            ("POST", PARENT + "/pipelineJobs", self.create_pipeline_job),
            ("GET", name("pipelineJobs"), self.get_pipeline_job),
            ("POST", name("pipelineJobs") + ":cancel", self.cancel),
            ("POST", PARENT + "/customJobs", self.create_custom_job),
            ("POST", name("customJobs") + ":cancel", self.cancel),
            ("POST", PARENT + "/schedules", self.create_schedule),
            ("POST", PARENT + "/models:upload", self.upload_model),
            ("POST", PARENT + "/endpoints", self.create_endpoint),
            ("POST", name("endpoints") + ":deployModel", self.deploy),
            ("POST", name("endpoints") + ":undeployModel", self.undeploy),
            ("PATCH", name("endpoints"), self.update),
            ("GET", PARENT + "/(customJobs|models|endpoints|schedules|pipelineJobs)", self.list),
            ("GET", name("(?:customJobs|models|endpoints|schedules)"), self.get),
            ("DELETE", name("(?:schedules|endpoints|models)"), self.delete),
            ("GET", r"/storage/v1/.*", self.no_bucket),
            ("GET", name("metadataStores"), lambda asked, name: {"name": name}),
            ("POST", PARENT + "/metadataStores/default/contexts", self.create_context),
            ("GET", CONTEXT, self.get),
            ("POST", CONTEXT + ":addContextChildren", self.add_children),
            ("POST", r"/v2/entries:list", self.entries),
        ]

    def create_pipeline_job(self, asked: Asked, parent: str) -> Any:
        parsed(asked.body, api.PipelineJob)
        name = f"{parent}/pipelineJobs/{asked.query['pipelineJobId']}"
        if name in self.resources:
            raise Refused(409, f"{name} already exists")
        self.resources[name] = {**asked.body, "name": name}
        self.looks[name] = 0
        if self.scripts:
            self.script = self.scripts.pop(0)
        return self._at(name)

    def get_pipeline_job(self, asked: Asked, name: str) -> Any:
        seen = self._at(name)
        self.looks[name] += 1
        return seen

    def _at(self, name: str) -> dict[str, Any]:
        found = self._found(name)
        moment = self.script[min(self.looks[name], len(self.script) - 1)]
        state = found.get("state") or f"PIPELINE_STATE_{moment['state']}"
        detail = {"taskDetails": moment.get("tasks", [])}
        parent, _, job = name.partition("/pipelineJobs/")
        run = {"name": f"{parent}/metadataStores/default/contexts/{job}", "displayName": job}
        self.resources[run["name"]] = {"schemaTitle": "system.PipelineRun", **run}
        seen = {**found, "state": state, "jobDetail": {**detail, "pipelineRunContext": run}}
        if "error" in moment:
            seen["error"] = {"code": 9, "message": moment["error"]}
        return seen

    def cancel(self, asked: Asked, name: str) -> Any:
        kind = "PIPELINE" if "/pipelineJobs/" in name else "JOB"
        self._found(name)["state"] = f"{kind}_STATE_CANCELLED"
        return {}

    def create_custom_job(self, asked: Asked, parent: str) -> Any:
        parsed(asked.body, api.CustomJob)
        state = {"state": "JOB_STATE_PENDING"}
        return self._made(f"{parent}/customJobs", {**asked.body, **state})

    def create_context(self, asked: Asked, parent: str) -> Any:
        parsed(asked.body, api.Context)
        name = f"{parent}/metadataStores/default/contexts/{asked.query['contextId']}"
        self.resources[name] = {**asked.body, "name": name}
        return self.resources[name]

    def add_children(self, asked: Asked, name: str) -> Any:
        self._found(name).setdefault("childContexts", []).extend(asked.body["childContexts"])
        return {}

    def create_schedule(self, asked: Asked, parent: str) -> Any:
        parsed(asked.body, api.Schedule)
        return self._made(f"{parent}/schedules", {**asked.body, "state": "ACTIVE"})

    def upload_model(self, asked: Asked, parent: str) -> Any:
        request = parsed(asked.body, api.UploadModelRequest, parent=parent)
        if request.parent_model:
            model = self._found(request.parent_model)
            model["versionId"] = str(int(model["versionId"]) + 1)
        else:
            model = self._made(f"{parent}/models", {**asked.body["model"], **SERVABLE})
        answer = {"model": model["name"], "modelVersionId": model["versionId"]}
        return done("UploadModelResponse", answer, parent)

    def create_endpoint(self, asked: Asked, parent: str) -> Any:
        parsed(asked.body, api.Endpoint)
        made = self._made(f"{parent}/endpoints", {**asked.body, "deployedModels": []})
        return done("Endpoint", made, parent)

    def deploy(self, asked: Asked, name: str) -> Any:
        parsed(asked.body, api.DeployModelRequest, endpoint=name)
        endpoint = self._found(name)
        number = str(len(self.sent("POST", ":deployModel")))
        made = f"2026-01-01T00:00:{int(number):02}Z"
        deployed = {**asked.body["deployedModel"], "id": number, "createTime": made}
        endpoint["deployedModels"].append(deployed)
        self._split(endpoint, asked.body.get("trafficSplit", {}), number)
        return done("DeployModelResponse", {"deployedModel": deployed}, name)

    def undeploy(self, asked: Asked, name: str) -> Any:
        endpoint = self._found(name)
        gone = asked.body["deployedModelId"]
        endpoint["deployedModels"] = [m for m in endpoint["deployedModels"] if m["id"] != gone]
        self._split(endpoint, asked.body.get("trafficSplit", {}), "")
        return done("UndeployModelResponse", {}, name)

    def _split(self, endpoint: dict[str, Any], split: dict[str, int], new: str) -> None:
        """A split must add up to 100, or be empty; `0` in it is the model just deployed."""
        if split and sum(split.values()) != 100:
            raise Refused(400, f"trafficSplit {split}: must add up to 100")
        endpoint["trafficSplit"] = {new if k == "0" else k: v for k, v in split.items()}

    def update(self, asked: Asked, name: str) -> Any:
        parsed(asked.body, api.Endpoint)
        endpoint = self._found(name)
        if "trafficSplit" in asked.query.get("updateMask", ""):
            self._split(endpoint, asked.body.get("trafficSplit", {}), "")
        return endpoint

    def list(self, asked: Asked, parent: str, kind: str) -> Any:
        wanted = asked.query.get("filter", "").partition("display_name=")[2].strip('"')
        found = [
            r
            for n, r in self.resources.items()
            if n.startswith(f"{parent}/{kind}/") and wanted in ("", r.get("displayName"))
        ]
        return {kind: found}

    def get(self, asked: Asked, name: str) -> Any:
        return self._found(name)

    def delete(self, asked: Asked, name: str) -> Any:
        self._found(name)
        del self.resources[name]
        return done("", {}, name)

    def no_bucket(self, asked: Asked) -> Any:
        raise Refused(403, "no permission storage.buckets.get")

    def entries(self, asked: Asked) -> Any:
        wanted = asked.body["filter"]
        errors = 'textPayload:"castell: error:"' in wanted
        return {
            "entries": [
                {"textPayload": line["text"]}
                for line in self.log
                if f'"{line["job"]}"' in wanted
                and (not errors or "castell: error:" in line["text"])
            ]
        }

    def _made(self, place: str, body: dict[str, Any]) -> dict[str, Any]:
        name = f"{place}/{len(self.resources) + 1}"
        self.resources[name] = {**body, "name": name}
        return self.resources[name]

    def _found(self, name: str) -> dict[str, Any]:
        """A version of a model (`…/models/1@2`) is that model here."""
        plain = name.partition("@")[0]
        if plain not in self.resources:
            raise Refused(404, f"{name} is not found")
        return self.resources[plain]


def parsed(body: Any, message: Any, **in_path: str) -> Any:
    """Refuses what Google's message has no field for."""
    found = message(**in_path)
    try:
        json_format.ParseDict(body, message.pb(found))
    except json_format.ParseError as error:
        raise Refused(400, str(error)) from None
    return found


def done(kind: str, answer: dict[str, Any], name: str) -> dict[str, Any]:
    """A long-running operation that has ended."""
    known = f"google.cloud.aiplatform.v1.{kind}" if kind else "google.protobuf.Empty"
    return {
        "name": f"{name}/operations/1",
        "done": True,
        "response": {"@type": f"type.googleapis.com/{known}", **answer},
    }
