"""Code of the user's own, named as pkg.module:attribute: looked for, then imported."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from typing import Any

from trainer.errors import UsageError

_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def is_name(name: str) -> bool:
    """Whether `name` is written as pkg.module:attribute."""
    return bool(_NAME.fullmatch(name))


def check_there(name: str, where: str) -> None:
    """Looks for the top-level package of `name`; nothing of the user's runs yet.

    where: how an error begins, as "--task pkg.module:Class".

    Raises:
      UsageError: it is not on the path.
    """
    _search_here()
    module = name.partition(":")[0]
    if importlib.util.find_spec(module.partition(".")[0]) is None:
        raise _no_module(where, module)


def load(name: str, where: str) -> Any:
    """Imports and returns what `name` says; see `check_there`.

    Raises:
      UsageError: there is no such module, or nothing of that name in it.
    """
    module, _, attribute = name.partition(":")
    _search_here()
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name is None or not (module + ".").startswith(error.name + "."):
            raise  # their module is there, and something that it imports is not
        raise _no_module(where, module) from None
    except AttributeError:
        raise UsageError(f"{where}: module {module!r} has no {attribute!r}") from None


def _search_here() -> None:
    if "" not in sys.path:  # a user's module stands where the command is run
        sys.path.insert(0, "")


def _no_module(where: str, module: str) -> UsageError:
    return UsageError(
        f"{where}: there is no module {module!r} on the path: run the command where it stands, or "
        "name its directory in PYTHONPATH"
    )
