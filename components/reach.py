"""What is raised when a platform does not answer, or not now: worth another look a moment later."""

from __future__ import annotations

from trainer.errors import UsageError


class Unreachable(UsageError):
    """The platform cannot be reached, is overloaded, or has an error of its own."""


def is_passing(status: int | None) -> bool:
    """Whether an HTTP status tells of the server's state rather than of the request."""
    return status == 429 or (status or 0) >= 500
