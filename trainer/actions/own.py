"""A user's own actions, named as pkg.module:function."""

from __future__ import annotations

from collections.abc import Sequence

from trainer import users
from trainer.actions.report import Action
from trainer.errors import UsageError


def check_names(names: Sequence[str]) -> None:
    """Refuses names that cannot be actions; nothing of the user's runs yet.

    Raises:
      UsageError: not of the form pkg.module:function, or there is no such package.
    """
    for name in names:
        if not users.is_name(name):
            raise UsageError(f"actions ({name}): name a callable as pkg.module:function")
        users.check_there(name, f"actions ({name})")


def find(name: str) -> Action:
    """Imports and returns the callable called `name`.

    Raises:
      UsageError: there is no such module or callable.
    """
    check_names([name])
    found: Action = users.load(name, f"actions ({name})")
    if not callable(found):
        raise UsageError(
            f"actions ({name}): {name.partition(':')[2]} is not callable: it gets a Report"
        )
    return found
