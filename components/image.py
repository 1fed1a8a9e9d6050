"""The container image that every step runs in. It holds the whole package: no step installs any.

`CASTELL_IMAGE`, or `castell compile --image`, names another one.
"""

from __future__ import annotations

import re
from typing import Any

from trainer.errors import UsageError

IMAGE = "castell:0.1.0"
IMAGE_VARIABLE = "CASTELL_IMAGE"

# Host and port, repository, tag, digest; as registries spell them. A host has a dot or a port.
_HOST = r"(?:(?:localhost|(?=[^/]*[.:])[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?::[0-9]+)?/)?"
_PART = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"{_HOST}{_PART}(?:/{_PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?"
    r"(?:@sha256:[0-9a-f]{64})?"
)
_LONGEST = 512


def check_reference(image: str, name: str = "image") -> None:
    """Raises UsageError if `image` is nothing that a registry could have; `name`: what holds it."""
    if len(image) > _LONGEST or not _REFERENCE.fullmatch(image):
        raise UsageError(
            f"{name} ({image[:_LONGEST]}): no image reference such as registry.example/castell:1"
        )


# KFP starts a step's Python as the child of a shell, which gets the platform's SIGTERM and passes
# nothing on: a training would never know that it is to stop (tests/pipelines/test_kfp_facts.py).
_AS_CHILD = "_KFP_RUNTIME=true python3 -m kfp.dsl.executor_main"
_INSTEAD = "_KFP_RUNTIME=true exec python3 -m kfp.dsl.executor_main"


def with_image(component: Any, image: str) -> Any:
    """Returns the component with another image; the imported one stays as it is.

    Its Python takes the place of the shell that starts it, so that signals reach it.
    """
    from kfp import dsl

    made = dsl.component(
        component.python_func, base_image=image, install_kfp_package=False,
        task_config_passthroughs=component.component_spec.task_config_passthroughs,
    )  # fmt: skip
    container = made.component_spec.implementation.container
    container.command = [word.replace(_AS_CHILD, _INSTEAD) for word in container.command]
    return made
