"""Label and field selectors, as list and watch take them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tests.doubles.kubernetes.status import Json, bad_request

Matches = Callable[[Json], bool]

_SET = re.compile(r"^(?P<key>[^\s!=,()]+)\s+(?P<how>in|notin)\s+\((?P<values>[^)]*)\)$")
_EQUAL = re.compile(r"^(?P<key>[^\s!=,()]+)\s*(?P<how>==|=|!=)\s*(?P<value>[^\s!=,()]*)$")
_KEY = re.compile(r"^(?P<no>!?)\s*(?P<key>[^\s!=,()]+)$")
_COMMA = re.compile(r",(?![^()]*\))")


def by_labels(text: str) -> Matches:
    """`a=b`, `a!=b`, `a in (b, c)`, `a notin (b)`, `a`, `!a`, joined by commas.

    Raises:
      Refused: 400, not a label selector.
    """
    rules = [_label_rule(part.strip()) for part in _COMMA.split(text) if part.strip()]
    return lambda thing: all(rule(labels_of(thing)) for rule in rules)


def by_fields(text: str, known: frozenset[str]) -> Matches:
    """`path=value` or `path!=value`, joined by commas.

    Raises:
      Refused: 400, not one of the few fields that the API server can select by.
    """
    rules: list[Matches] = []
    for part in filter(None, text.split(",")):
        found = _EQUAL.match(part.strip())
        if not found:
            raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
        key, value, wanted = found["key"], found["value"], found["how"] != "!="
        if key not in known:
            raise bad_request(f"field label not supported: {key}")
        rules.append(partial(_has, path=key, value=value, wanted=wanted))
    return lambda thing: all(rule(thing) for rule in rules)


def labels_of(thing: Json) -> Mapping[str, str]:
    found: Mapping[str, str] = thing["metadata"].get("labels") or {}
    return found


def selects(selector: Mapping[str, str], thing: Json) -> bool:
    """Whether a Service's selector covers a pod; an empty one covers none."""
    labels = labels_of(thing)
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())


def _label_rule(part: str) -> Callable[[Mapping[str, str]], bool]:
    if found := _SET.match(part):
        key, wanted = found["key"], found["how"] == "in"
        values = {value.strip() for value in found["values"].split(",")}
        return lambda labels: (labels.get(key) in values) == wanted
    if found := _EQUAL.match(part):
        key, value, wanted = found["key"], found["value"], found["how"] != "!="
        return lambda labels: (labels.get(key) == value) == wanted
    if found := _KEY.match(part):
        key, wanted = found["key"], not found["no"]
        return lambda labels: (key in labels) == wanted
    raise bad_request(f"unable to parse requirement: {part}")


def _has(thing: Json, path: str, value: str, wanted: bool) -> bool:
    return (_field(thing, path) == value) == wanted


def _field(thing: Any, path: str) -> str:
    for step in path.split("."):
        thing = (thing or {}).get(step)
    return "" if thing is None else str(thing)
