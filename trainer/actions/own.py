"""A user's own actions, named as pkg.module:function."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Sequence

from trainer.actions.report import Action
from trainer.errors import UsageError

_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def check_names(names: Sequence[str]) -> None:
    """Refuses names that cannot be actions; nothing of the user's runs yet.

    Raises:
      UsageError: not of the form pkg.module:function, or there is no such package.
    """
    for name in names:
        if not _NAME.fullmatch(name):
            raise UsageError(f"actions ({name}): name a callable as pkg.module:function")
        _search_here()
        module = name.partition(":")[0]
        if importlib.util.find_spec(module.partition(".")[0]) is None:
            raise _no_module(name, module)


def find(name: str) -> Action:
    """Imports and returns the callable called `name`.

    Raises:
      UsageError: there is no such module or callable.
    """
    check_names([name])
    module, _, attribute = name.partition(":")
    try:
        found: Action = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name is None or not (module + ".").startswith(error.name + "."):
            raise  # their module is there, and something that it imports is not
        raise _no_module(name, module) from None
    except AttributeError:
        raise UsageError(f"actions ({name}): module {module!r} has no {attribute!r}") from None
    if not callable(found):
        raise UsageError(f"actions ({name}): {attribute} is not callable: it gets a Report")
    return found


def _search_here() -> None:
    if "" not in sys.path:  # a user's module stands where the command is run
        sys.path.insert(0, "")


def _no_module(name: str, module: str) -> UsageError:
    return UsageError(f"actions ({name}): there is no module {module!r} on the path")
