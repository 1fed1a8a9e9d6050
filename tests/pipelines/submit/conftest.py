from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles.kfp import Kfp
from tests.doubles.vertex import Vertex


@pytest.fixture
def vertex(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Vertex]:
    with Vertex() as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.address)
        monkeypatch.setenv("CASTELL_VERTEX_API_ENDPOINT", server.address)
        monkeypatch.setenv("CASTELL_VERTEX_LOGGING_ENDPOINT", server.address)
        monkeypatch.setenv("CASTELL_VERTEX_PROJECT", "a-project")
        monkeypatch.setenv("CASTELL_VERTEX_PIPELINE_ROOT", "gs://bucket/root")
        monkeypatch.chdir(tmp_path)
        yield server


@pytest.fixture
def kfp(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Kfp]:
    with Kfp() as server:
        monkeypatch.setenv("CASTELL_KFP_HOST", server.address)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        yield server


@pytest.fixture(autouse=True)
def no_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The image of these tests has its digest; what a registry does: test_images.py."""
    monkeypatch.setenv("CASTELL_IMAGE", "registry.example/castell@sha256:" + "0" * 64)
