"""The images: small, unprivileged, complete, and quiet about how they were made."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.docker.engine import CASTELL, TRAINER, docker

MOST_BYTES = 1_700_000_000


def config(image: str) -> dict[str, Any]:
    (found,) = json.loads(docker("image", "inspect", image))
    return dict(found)


def inside(image: str, code: str) -> str:
    return docker("run", "--rm", "--network", "none", "--entrypoint", "python", image, "-c", code)


def test_the_trainer_is_small() -> None:
    assert config(TRAINER)["Size"] <= MOST_BYTES


@pytest.mark.parametrize("image", [TRAINER, CASTELL])
def test_it_begins_with_an_init_as_nobody_special(image: str) -> None:
    found = config(image)["Config"]
    assert found["Entrypoint"] == ["tini", "--", "python", "-m", "trainer"]
    assert found["User"] == "1000"
    labels = found["Labels"]
    assert labels["org.opencontainers.image.version"] == "0.1.0"
    assert labels["org.opencontainers.image.revision"]


@pytest.mark.parametrize("image", [TRAINER, CASTELL])
def test_it_is_byte_compiled_and_has_no_pip(image: str) -> None:
    code = """
import importlib.util, keras, sysconfig, trainer, os
for module in (keras, trainer, os):
    assert os.path.exists(importlib.util.cache_from_source(module.__file__)), module
assert importlib.util.find_spec("pip") is None
print(os.getuid())
"""
    assert inside(image, code).endswith("1000")


def test_the_trainer_has_nothing_of_the_other_steps() -> None:
    code = """
from importlib.util import find_spec
print([name for name in ("kfp", "pyarrow", "tfx_bsl") if find_spec(name)])
"""
    assert inside(TRAINER, code).endswith("[]")
    assert inside(CASTELL, code).endswith("['kfp', 'pyarrow', 'tfx_bsl']")


@pytest.mark.parametrize("image", [TRAINER, CASTELL])
def test_it_explains_itself(image: str) -> None:
    assert "usage: python -m trainer" in docker("run", "--rm", image, "--help")
