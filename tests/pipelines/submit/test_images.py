"""Tags become digests, as a registry gives them, with docker's own credentials or without."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipelines.cli import main
from pipelines.compiled import Compiled
from pipelines.submit import images
from pipelines.submit.command import digests
from tests.doubles.server import Asked, Server
from tests.pipelines import ir
from trainer.errors import UsageError

DIGEST = "sha256:" + "a" * 64
TAGGED = "team/castell:0.1.0"


@dataclass
class Registry(Server):
    """Gives digests to those who bring a token, and tokens to those who bring a login."""

    login: str = ""

    def handle(self, asked: Asked) -> tuple[int, dict[str, str], Any]:
        if asked.path == "/token":
            wanted = f"Basic {base64.b64encode(self.login.encode()).decode()}"
            if self.login and asked.headers.get("Authorization") != wanted:
                return 401, {}, {}
            return 200, {}, {"token": "a-token"}
        if asked.headers.get("Authorization") != "Bearer a-token":
            realm = f'Bearer realm="{self.address}/token",service="reg"'
            return 401, {"WWW-Authenticate": realm}, {}
        if asked.path != "/v2/team/castell/manifests/0.1.0":
            return 404, {}, {}
        return 200, {"Docker-Content-Digest": DIGEST}, ""


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with Registry() as server:
        yield server


def host(registry: Registry) -> str:
    return registry.address.removeprefix("http://")


def test_a_tag_becomes_its_digest(registry: Registry) -> None:
    assert images.resolve(f"{host(registry)}/{TAGGED}") == f"{host(registry)}/team/castell@{DIGEST}"
    asked = registry.asked[-1]
    assert asked.method == "HEAD"
    assert "oci.image.index" in asked.headers["Accept"]
    assert registry.asked[1].query["scope"] == "repository:team/castell:pull"


def test_a_login_is_docker_s_own(registry: Registry, tmp_path: Path) -> None:
    registry.login = "me:secret"
    with pytest.raises(images.Unresolved, match="not allowed"):
        images.resolve(f"{host(registry)}/{TAGGED}")
    kept = {"auth": base64.b64encode(b"me:secret").decode()}
    (tmp_path / "config.json").write_text(json.dumps({"auths": {host(registry): kept}}))
    assert images.resolve(f"{host(registry)}/{TAGGED}").endswith(DIGEST)


def test_a_login_may_be_a_helper_s(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.login = "me:secret"
    helper = tmp_path / "docker-credential-vault"
    helper.write_text('#!/bin/sh\necho \'{"Username": "me", "Secret": "secret"}\'\n')
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    (tmp_path / "config.json").write_text(json.dumps({"credsStore": "vault"}))
    assert images.resolve(f"{host(registry)}/{TAGGED}").endswith(DIGEST)


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("castell", ("registry-1.docker.io", "library/castell", "latest")),
        ("team/castell:1", ("registry-1.docker.io", "team/castell", "1")),
        ("localhost/castell:1", ("localhost", "castell", "1")),
        ("reg:5000/a/b/c:1.2", ("reg:5000", "a/b/c", "1.2")),
        ("europe-docker.pkg.dev/p/r/castell:1", ("europe-docker.pkg.dev", "p/r/castell", "1")),
    ],
)
def test_a_reference_is_read_as_docker_reads_it(image: str, parts: tuple[str, ...]) -> None:
    found = images.Reference.parse(image)
    assert (found.registry, found.repository, found.tag) == parts


def test_what_has_a_digest_and_google_s_launcher_stay() -> None:
    for image in (f"x/y@{DIGEST}", "gcr.io/ml-pipeline/google-cloud-pipeline-components:2.22.0"):
        assert images.resolve(image) == image
    with pytest.raises(UsageError, match="is no reference"):
        images.resolve("Not An Image")


@pytest.mark.parametrize("target", ["kfp", "vertex"])
def test_every_step_and_worker_gets_the_digest(
    registry: Registry, tmp_path: Path, target: str
) -> None:
    """KP#13862: results of an older image were taken, since its tag had moved."""
    file = tmp_path / "x.yaml"
    tagged = f"{host(registry)}/{TAGGED}"
    file.write_text(ir.text("train_evaluate_export", target, tagged))
    compiled = Compiled.read(str(file))
    compiled = compiled.with_images(digests(compiled.images, required=True))
    assert tagged not in json.dumps(compiled.spec)
    pinned = {i for i in compiled.images if not i.startswith("gcr.io/ml-pipeline/")}
    assert pinned == {f"{host(registry)}/team/castell@{DIGEST}"}


def test_what_cannot_be_had_is_said_or_refused(
    registry: Registry, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CASTELL_KFP_HOST", "http://127.0.0.1:9")
    argv = ["submit", "train_evaluate_export", "--target", "kfp", "--show"]
    argv += [
        "--image",
        f"{host(registry)}/team/other:1",
        "--param",
        "sources=gs://b/x",
        "--param",
        "label=y",
    ]
    assert main(argv) == 0
    said = f"castell: image {host(registry)}/team/other:1: no digest: there is no such image (404)"
    assert said in capsys.readouterr().err
    assert main([*argv, "--require-digest"]) == 2
    assert "castell: error: image" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("challenge", "answer", "says"),
    [
        ("Bearer service=x", {}, "does not say where it gives tokens"),
        ('Bearer realm="file:///etc/passwd"', {}, "does not say where it gives tokens"),
        ('Bearer realm="{}/token"', {}, "gives no token"),
        ('Bearer realm="{}/token"', [], "gives no token"),
        ('Bearer realm="{}/token"', {"token": ["SECRET"]}, "gives no token"),
        ('Bearer realm="{}/token"', {"token": "SECRET\nX"}, "gives no token"),
        ('Bearer realm="{}/token"', "no JSON", "Expecting value"),
        ("", {}, "not allowed"),
    ],
)
def test_an_odd_login_of_a_registry_is_named(
    registry: Registry, challenge: str, answer: Any, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def handle(asked: Asked) -> tuple[int, dict[str, str], Any]:
        if asked.path == "/token":
            return 200, {}, answer
        return 401, {"WWW-Authenticate": challenge.replace("{}", registry.address)}, {}

    monkeypatch.setattr(registry, "handle", handle)
    with pytest.raises(images.Unresolved, match=says) as raised:
        images.resolve(f"{host(registry)}/{TAGGED}")
    assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize(
    "config",
    [
        '{"auths": null, "credHelpers": []}',
        "[]",
        '{"auths": {"%s": {"auth": "no base64"}}}',
        '{"auths": {"%s": {"auth": 1}}}',
        '{"credsStore": ["x"]}',
    ],
)
def test_odd_credentials_of_docker_are_none(
    registry: Registry, config: str, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(config.replace("%s", host(registry)))
    assert images.resolve(f"{host(registry)}/{TAGGED}").endswith(DIGEST)
