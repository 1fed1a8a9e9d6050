"""A compiled pipeline as a document: what it declares, its images, its caching."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.errors import UsageError


@dataclass(frozen=True)
class Compiled:
    """The YAML of a pipeline.

    spec: the PipelineSpec. platform: the second document, with what Kubernetes alone understands;
      empty if there is none.
    """

    file: str
    spec: dict[str, Any]
    platform: dict[str, Any]

    @classmethod
    def read(cls, file: str) -> Compiled:
        """Reads a file.

        Raises:
          UsageError: it is no compiled pipeline.
        """
        import yaml

        try:
            spec, *others = yaml.safe_load_all(Path(file).read_text())
            if not {"root", "components", "pipelineInfo"} <= set(spec) or len(others) > 1:
                raise ValueError
            found = cls(file, spec, (others[0] or {}) if others else {})
            found._walk()
        except (ValueError, TypeError, yaml.YAMLError):
            raise UsageError(f"{file} is not a compiled pipeline") from None
        except (AttributeError, KeyError, IndexError, RecursionError) as error:
            raise UsageError(
                f"{file} is not a compiled pipeline, or edited since: compile it again "
                f"({type(error).__name__}: {error})"
            ) from None
        except OSError as error:
            raise UsageError(f"{file}: {error.strerror}") from None
        return found

    def _walk(self) -> None:
        """Reads all that is ever read of it, and all that KFP's message of a pipeline holds."""
        from google.protobuf import json_format
        from kfp.pipeline_spec import pipeline_spec_pb2

        inputs = self.spec["root"].get("inputDefinitions", {})
        for declared in inputs.get("parameters", {}).values():
            str(declared["parameterType"])
        # Each raises what `read` turns into its line.
        str(self.name), list(self.steps), dict(self.platform), str(self.target)
        self.with_images({}).without_cache()
        try:
            message = pipeline_spec_pb2.PipelineSpec()
            json_format.ParseDict(self.spec, message, ignore_unknown_fields=True)
        except json_format.ParseError as error:
            raise KeyError(" ".join(str(error).split())) from None

    @property
    def name(self) -> str:
        """The pipeline's name."""
        return str(self.spec["pipelineInfo"]["name"])

    @property
    def steps(self) -> list[str]:
        """The names of all steps that it may run."""
        components: dict[str, Any] = self.spec["components"]
        return [n.removeprefix("comp-") for n, c in components.items() if "executorLabel" in c]

    @property
    def target(self) -> str:
        """The target that train_evaluate_export was compiled for; empty for another pipeline.

        Its training step tells.
        """
        step = self.spec["components"].get("comp-train-model", {})
        if self.name != "train-evaluate-export" or not step:
            return ""
        taken = step.get("inputDefinitions", {}).get("parameters", {})
        marks = {"vertex": "worker_pool_specs", "kfp": "kubernetes"}
        return next((target for target, mark in marks.items() if mark in taken), "local")

    def check_target(self, target: str) -> None:
        """Raises UsageError if it was compiled for another target."""
        if self.target not in ("", target):
            raise UsageError(
                f"{self.file} is compiled for target {self.target}: compile it with "
                f"--target {target}"
            )

    @property
    def parameters(self) -> dict[str, Any]:
        """Its parameters, as the IR declares them.

        Raises:
          UsageError: it takes artifacts, too.
        """
        inputs = self.spec["root"].get("inputDefinitions", {})
        if inputs.get("artifacts"):
            raise UsageError(
                f"{self.file} takes artifacts ({', '.join(inputs['artifacts'])}), which cannot be "
                "given here: run a pipeline, or the step's own command"
            )
        return dict(inputs.get("parameters", {}))

    @property
    def images(self) -> set[str]:
        """The images of all steps."""
        return {holder[key] for holder, key in _image_fields(self.spec)}

    def with_images(self, others: Mapping[str, str]) -> Compiled:
        """Returns the pipeline with some images replaced."""
        spec = copy.deepcopy(self.spec)
        for holder, key in _image_fields(spec):
            holder[key] = others.get(holder[key], holder[key])
        return Compiled(self.file, spec, self.platform)

    def without_cache(self) -> Compiled:
        """Returns the pipeline with no task that may take an earlier run's outputs.

        Clients do it too, but KFP's forgets the tasks inside conditions.
        """
        spec = copy.deepcopy(self.spec)
        for component in (spec["root"], *spec["components"].values()):
            for task in component.get("dag", {}).get("tasks", {}).values():
                task["cachingOptions"] = {}
        return Compiled(self.file, spec, self.platform)

    def write(self, file: Path) -> None:
        """Writes it again."""
        import yaml

        documents = [self.spec, self.platform] if self.platform else [self.spec]
        file.write_text(yaml.safe_dump_all(documents))


def _image_fields(spec: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Yields where images stand: executors, worker pools, and what a task hands on to its pods."""
    for executor in spec["deploymentSpec"]["executors"].values():
        if "container" in executor:
            yield executor["container"], "image"
    for component in (spec["root"], *spec["components"].values()):
        declared = component.get("inputDefinitions", {}).get("parameters", {})
        for pool in declared.get("worker_pool_specs", {}).get("defaultValue", []):
            yield pool["container_spec"], "image_uri"
        for task in component.get("dag", {}).get("tasks", {}).values():
            given = task.get("inputs", {}).get("parameters", {}).get("image", {})
            if "runtimeValue" in given:
                yield given["runtimeValue"], "constant"
