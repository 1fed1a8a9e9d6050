"""A server that takes a request and never answers ends a command, after a word on the wait."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from components import reach
from pipelines.submit import kfp_client
from tests.doubles.vertex import Vertex
from tests.pipelines.submit.calls import castell, submit

RUN = "00000000-0000-0000-0000-000000000001"


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """The address of a server that only listens."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reach, "WORD_SECONDS", 0.2)
    monkeypatch.setattr(kfp_client, "ANSWER_SECONDS", 0.6)
    monkeypatch.setattr("components.google_cloud.ANSWER_SECONDS", 0.6)
    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.timeout(60)
def test_of_kfp(silent: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert castell("status", RUN, "--host", silent) == 2
    waiting, error = capsys.readouterr().err.splitlines()
    assert waiting.startswith(f"castell: waiting for KFP at {silent} (0")
    assert error.startswith(f"castell: error: KFP at {silent} cannot be reached: ")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("command", ["status", "cancel", "logs"])
def test_of_vertex(silent: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert castell(command, "a-run", "--api-endpoint", silent, "--project", "p") == 2
    waiting, error = capsys.readouterr().err.splitlines()
    assert waiting.startswith("castell: waiting for Vertex (0")
    assert error.startswith("castell: error: Vertex cannot be reached: ")


@pytest.mark.timeout(60)
def test_waiting_has_patience_with_it(silent: str, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--api-endpoint", silent, "--project", "p", "--wait", "--poll-seconds", "0.01")
    assert castell("status", "a-run", *flags) == 2
    assert capsys.readouterr().err.count("castell: waiting for Vertex") == 6


@pytest.mark.parametrize(
    ("content", "says"), [("[]", "holds no key"), ("{", "no JSON"), (None, "Is a directory")]
)
def test_credentials_that_are_none(
    content: str | None, says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    file = tmp_path / "key.json"
    file.write_text(content) if content else file.mkdir()
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # nobody outside is asked
    monkeypatch.chdir(tmp_path)
    assert castell("status", "a-run", "--project", "p") == 2
    err = capsys.readouterr().err
    assert f"GOOGLE_APPLICATION_CREDENTIALS ({file}): " in err
    assert says in err


def test_an_address_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert castell("status", "a-run", "--project", "p", "--api-endpoint", "http://[::1") == 2
    assert "api_endpoint (http://[::1): Invalid" in capsys.readouterr().err


@pytest.mark.parametrize("page", [{}, [], {"name": "x"}])
@pytest.mark.parametrize("command", [("status",), ("cancel",), ("logs",), ("cancel", "--schedule")])
def test_json_without_a_name_is_no_answer_of_vertex(
    page: object, command: tuple[str, ...], vertex: Vertex, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(vertex, "handle", lambda asked: (200, {}, page))
    assert castell(command[0], "a-run", *command[1:]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "Vertex answers, but not as its API does" in err or "Vertex's client refused it" in err


@pytest.mark.parametrize("more", [(), ("--cron", "30 2 * * *")])
def test_a_run_without_a_name_has_not_begun(
    vertex: Vertex, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    answer = vertex.handle
    monkeypatch.setattr(
        vertex, "handle", lambda asked: answer(asked) if asked.path[:3] != "/v1" else (200, {}, {})
    )
    assert submit("vertex", *more) == 2
    out, err = capsys.readouterr()
    assert not out
    assert "Vertex answers, but not as its API does" in err
