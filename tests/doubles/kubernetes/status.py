"""Refusals as the API server words them: `Status` objects with a code and a reason."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


class Refused(Exception):
    """What a request is answered with instead of an object."""

    def __init__(self, code: int, reason: str, message: str, details: Json | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details or {}

    def body(self) -> Json:
        return {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "details": self.details,
            "code": self.code,
        }  # fmt: skip


def not_found(resource: str, name: str) -> Refused:
    """`resource` is qualified by its group: `jobs.batch`, `pods`."""
    return Refused(404, "NotFound", f'{resource} "{name}" not found', named(resource, name))


def already_exists(resource: str, name: str) -> Refused:
    message = f'{resource} "{name}" already exists'
    return Refused(409, "AlreadyExists", message, named(resource, name))


def conflict(resource: str, name: str) -> Refused:
    message = (
        f'Operation cannot be fulfilled on {resource} "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    return Refused(409, "Conflict", message, named(resource, name))


def invalid(kind: str, name: str, causes: list[tuple[str, str]]) -> Refused:
    """422; `causes`: (path of the field, what is wrong with it)."""
    lines = [f"{field}: {text}" for field, text in causes]
    listed = lines[0] if len(lines) == 1 else "[" + ", ".join(lines) + "]"
    details = {
        "name": name, "kind": kind,
        "causes": [
            {"reason": "FieldValueInvalid", "message": text, "field": field}
            for field, text in causes
        ],
    }  # fmt: skip
    return Refused(422, "Invalid", f'{kind} "{name}" is invalid: {listed}', details)


def forbidden(verb: str, resource: str, group: str, namespace: str, name: str) -> Refused:
    plural = resource.split(".", maxsplit=1)[0]
    message = (f'{resource} "{name}" is forbidden: ' if name else f"{resource} is forbidden: ") + (
        f'User "system:serviceaccount:{namespace}:pipeline-runner" cannot {verb} resource '
        f'"{plural}" in API group "{group}" in the namespace "{namespace}"'
    )
    return Refused(403, "Forbidden", message, named(resource, name))


def bad_request(message: str) -> Refused:
    return Refused(400, "BadRequest", message)


def beyond_the_double(what: str) -> Refused:
    """What Kubernetes can and this double cannot is said, never passed over."""
    return Refused(501, "NotImplemented", f"this double of Kubernetes has no {what}")


def named(resource: str, name: str) -> Json:
    plural, _, group = resource.partition(".")
    return {"name": name, "kind": plural, "group": group}
