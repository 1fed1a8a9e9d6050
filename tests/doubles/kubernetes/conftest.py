"""These tests run containers: they are collected where a Docker engine answers.

With CASTELL_DOCKER set, as in CI, they are collected in any case, and fail where none does.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.doubles.kubernetes.cluster import Cluster


def docker_answers() -> bool:
    if not shutil.which("docker"):
        return False
    try:
        asked = subprocess.run(["docker", "info"], capture_output=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return False
    return asked.returncode == 0


collect_ignore_glob = [] if os.environ.get("CASTELL_DOCKER") or docker_answers() else ["test_*.py"]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running
