"""Compiled pipelines for tests: the YAML, and what KFP's own message types make of it."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2

from pipelines.compile import compile_to, default_image

TARGETS = ("local", "kfp", "vertex")


def text(name: str, target: str | None = None, image: str | None = None) -> str:
    return _text(name, target, image or default_image())


@cache
def _text(name: str, target: str | None, image: str) -> str:
    with TemporaryDirectory() as directory:
        file = Path(directory, "x.yaml")
        compile_to(str(file), name, target=target, image=image)
        return file.read_text()


def document(name: str, target: str | None = None, image: str | None = None) -> dict[str, Any]:
    """The pipeline; what Kubernetes alone understands is a document of its own, after it."""
    return next(iter(yaml.safe_load_all(text(name, target, image))))


def pipeline_spec(of: dict[str, Any]) -> Any:
    return json_format.ParseDict(of, pipeline_spec_pb2.PipelineSpec())


def deployment(of: dict[str, Any]) -> Any:
    """`deploymentSpec` is a Struct: only this parse finds a wrong field in it."""
    return json_format.ParseDict(of["deploymentSpec"], pipeline_spec_pb2.PipelineDeploymentConfig())
