"""Two configurations compared: which keys differ, and both values, for people to read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_LONGEST_VALUE = 60
_ABSENT = object()


@dataclass(frozen=True)
class Difference:
    """A dotted key and its values; `str` says "key is 1 there and 2"."""

    key: str
    there: Any
    here: Any

    def __str__(self) -> str:
        """Says both values; the caller adds where the second one is."""
        return f"{self.key} is {_show(self.there)} there and {_show(self.here)}"


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[Difference]:
    """Lists the keys, nested ones dotted, whose JSON values are not equal; sorted by key."""
    return _differences(_plain(there), _plain(here), "")


def _differences(there: dict[str, Any], here: dict[str, Any], prefix: str) -> list[Difference]:
    found: list[Difference] = []
    for key in sorted(there.keys() | here.keys()):
        old, new = there.get(key, _ABSENT), here.get(key, _ABSENT)
        if isinstance(old, dict) and isinstance(new, dict):
            found.extend(_differences(old, new, f"{prefix}{key}."))
        elif old != new:
            found.append(Difference(prefix + key, old, new))
    return found


def _plain(value: Any) -> Any:
    """The value as JSON gives it back, so that a tuple equals the list that was stored."""
    return json.loads(json.dumps(value))


def _show(value: Any) -> str:
    if value is _ABSENT:
        return "not set"
    text = json.dumps(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."
