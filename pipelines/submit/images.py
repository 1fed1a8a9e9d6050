"""Image tags become digests, as the registry gives them at this moment.

A tag that moves leaves a task's cache key as it is: an older image's results would be taken for
the new one's. What is asked is the registry's HTTP API; the credentials are docker's own.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from trainer.errors import UsageError

TIMEOUT_SECONDS = 10.0
# Vertex knows the launcher of its jobs by its name: it stays as it is.
KEPT = "gcr.io/ml-pipeline/google-cloud-pipeline-components:"
_MANIFESTS = ", ".join(
    f"application/vnd.{kind}+json"
    for kind in (
        "oci.image.index.v1",
        "oci.image.manifest.v1",
        "docker.distribution.manifest.list.v2",
        "docker.distribution.manifest.v2",
    )
)
_DOCKER_HUB = "registry-1.docker.io"
_DOCKER_HUB_KEY = "https://index.docker.io/v1/"
_TOKEN = re.compile(r"[!-~]+")
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')


class Unresolved(Exception):
    """Why a digest could not be had, in a few words."""


@dataclass(frozen=True)
class Reference:
    """An image's parts: `registry.example/team/castell:0.1.0`."""

    registry: str
    repository: str
    tag: str

    @classmethod
    def parse(cls, image: str) -> Reference:
        """Reads a reference that names no digest.

        Raises:
          UsageError: it is none.
        """
        first, slash, rest = image.partition("/")
        if not slash or not (set(".:") & set(first) or first == "localhost"):
            first, rest = _DOCKER_HUB, image if slash else f"library/{image}"
        repository, _, tag = rest.partition(":")
        if not re.fullmatch(r"[a-z0-9][a-z0-9._/-]*", repository) or not re.fullmatch(
            r"[\w.-]*", tag
        ):
            raise UsageError(f"image {image!r} is no reference such as registry.example/castell:1")
        return cls(first, repository, tag or "latest")

    @property
    def scheme(self) -> str:
        """Registries on this machine speak http."""
        host = self.registry.partition(":")[0]
        return "http" if host in ("localhost", "127.0.0.1") else "https"


def resolve(image: str) -> str:
    """Returns the image with its digest instead of its tag.

    Raises:
      Unresolved: the registry cannot be reached, or does not give it.
    """
    if "@" in image or image.startswith(KEPT):
        return image
    reference = Reference.parse(image)
    url = (
        f"{reference.scheme}://{reference.registry}/v2/{reference.repository}/manifests/"
        f"{reference.tag}"
    )
    headers = {"Accept": _MANIFESTS}
    try:
        try:
            digest = _digest(url, headers)
        except urllib.error.HTTPError as error:
            if error.code != 401:
                raise
            challenge = error.headers.get("WWW-Authenticate", "")
            allowed = _authorization(reference, challenge)
            digest = _digest(url, {**headers, "Authorization": allowed})
    except urllib.error.HTTPError as error:
        said = {401: "not allowed", 403: "not allowed", 404: "there is no such image"}
        raise Unresolved(f"{said.get(error.code, error.reason)} ({error.code})") from None
    except (OSError, HTTPException, ValueError) as error:
        raise Unresolved(str(getattr(error, "reason", error))) from None
    if not digest:
        raise Unresolved("the registry names no digest")
    return f"{image.removesuffix(':' + reference.tag)}@{digest}"


def _digest(url: str, headers: dict[str, str]) -> str:
    request = urllib.request.Request(url, headers=headers, method="HEAD")
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
        return str(answer.headers.get("Docker-Content-Digest", ""))


def _authorization(reference: Reference, challenge: str) -> str:
    """Returns the header that answers a registry's challenge."""
    login = _login(reference.registry)
    basic = f"Basic {base64.b64encode(login.encode()).decode()}" if login else ""
    kind, _, rest = challenge.partition(" ")
    if kind.lower() != "bearer":
        return basic
    fields = dict(_CHALLENGE.findall(rest))
    if not fields.get("realm", "").startswith(("http://", "https://")):
        raise Unresolved("the registry does not say where it gives tokens")
    query = {k: fields[k] for k in ("service", "scope") if k in fields}
    query.setdefault("scope", f"repository:{reference.repository}:pull")
    request = urllib.request.Request(f"{fields['realm']}?{urllib.parse.urlencode(query)}")
    if basic:
        request.add_header("Authorization", basic)
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
        given = json.load(answer)
    token = _within(given, "token") or _within(given, "access_token")
    # Not shown if it is none: it may be one that a line break has got into.
    if not (isinstance(token, str) and _TOKEN.fullmatch(token)):
        raise Unresolved("the registry's login gives no token")
    return f"Bearer {token}"


def _login(registry: str) -> str:
    """Returns `user:password` of a registry, as docker keeps it; empty if it keeps none."""
    directory = os.environ.get("DOCKER_CONFIG") or str(Path.home() / ".docker")
    try:
        config = json.loads(Path(directory, "config.json").read_text())
    except (OSError, ValueError):
        return ""
    name = _DOCKER_HUB_KEY if registry == _DOCKER_HUB else registry
    helper = _within(config, "credHelpers", name) or _within(config, "credsStore")
    if isinstance(helper, str) and helper:
        return _from_helper(helper, name)
    kept = _within(config, "auths", name, "auth")
    try:
        return base64.b64decode(kept).decode() if isinstance(kept, str) else ""
    except ValueError:
        return ""


def _within(document: Any, *keys: str) -> Any:
    """Returns what stands under keys in nested mappings, None if one is none."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _from_helper(helper: str, name: str) -> str:
    try:
        done = subprocess.run(
            [f"docker-credential-{helper}", "get"],
            input=name, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=True,
        )  # fmt: skip
        found = json.loads(done.stdout)
        return f"{found['Username']}:{found['Secret']}"
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return ""
