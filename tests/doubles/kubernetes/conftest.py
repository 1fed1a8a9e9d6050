"""These tests run containers: they are collected where a Docker engine answers.

With CASTELL_DOCKER set, as in CI, they are collected in any case, and fail where none does.
"""

import os
from collections.abc import Iterator

import pytest

from tests.doubles.kubernetes.cluster import Cluster
from tests.doubles.kubernetes.engine import answers

collect_ignore_glob = [] if os.environ.get("CASTELL_DOCKER") or answers() else ["test_*.py"]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running
