"""`--param KEY=VALUE` read by the types that the compiled pipeline declares."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainer.config import document
from trainer.errors import UsageError, suggestion

_FORMS = {
    "LIST": "list: [a, b]",
    "STRUCT": "mapping: {a: 1}",
    "BOOLEAN": "true or false",
    "NUMBER_INTEGER": "whole number",
    "NUMBER_DOUBLE": "number",
}
# Lists of text in the pipelines of this package.
_TEXTS = (
    "sources", "null_values", "drop", "slices", "thresholds", "formats",
    "validate_rules",
)  # fmt: skip
# Parameters travel as protobuf values: doubles, and messages in at most a hundred messages.
_WHOLE = 2**53
_DEPTH = 32
# What an error shows of a value.
_SHOWN = 80


def parse(texts: Sequence[str], declared: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the arguments of a run; `declared` is `root.inputDefinitions.parameters` of the IR.

    A list takes one value, several (the parameter given again), or a YAML list `[a, b]`.

    Raises:
      UsageError: a parameter is unknown, missing, given twice, or of another type.
    """
    given: dict[str, list[str]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--param {text}: must be KEY=VALUE")
        if name not in declared:
            if name == "workers":  # decided before, where there is no such parameter
                raise UsageError(f"--param {text}: no parameter of this target: use --workers N")
            near = suggestion(name, list(declared))
            raise UsageError(
                f"no parameter {name!r}{near}: there are {', '.join(sorted(declared))}"
            )
        given.setdefault(name, []).append(value)
    missing = [n for n, declaration in declared.items()
               if n not in given and not declaration.get("isOptional")]  # fmt: skip
    if missing:
        raise UsageError(f"{' and '.join(missing)} missing: --param {missing[0]}=VALUE")
    return {
        name: _value(name, values, declared[name]["parameterType"])
        for name, values in given.items()
    }


def check(arguments: Mapping[str, Any]) -> None:
    """Refuses what cannot travel to the steps.

    Raises:
      UsageError: a value is none that JSON has, a list of texts holds something else, or there are
        no workers.
    """
    for name, value in arguments.items():
        _check_json(f"parameter {name}", value, ())
    for name in _TEXTS:
        for one in arguments.get(name, ()):
            if not isinstance(one, str):
                raise UsageError(f"parameter {name} ({_short(one)}): no text: quote it")
    if isinstance(workers := arguments.get("workers"), int) and workers < 1:
        raise UsageError(f"parameter workers ({workers}): must be at least 1")


def defaults(declared: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Returns what parameters are if they are left out."""
    return {name: one["defaultValue"] for name, one in declared.items() if "defaultValue" in one}


def table(declared: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Returns a line a parameter: name, how it is written, default, meaning."""
    lines = []
    for name, declaration in declared.items():
        default = "" if not declaration.get("isOptional") else declaration.get("defaultValue")
        shown = "required" if default == "" and "isOptional" not in declaration else repr(default)
        form = _FORMS.get(declaration["parameterType"], "text")
        lines.append(f"{name:16} {form:16} [{shown}] {declaration.get('description', '')}")
    return lines


def _check_json(where: str, value: Any, around: tuple[int, ...]) -> None:
    """Refuses what YAML has and JSON has not; `around` holds the ids of what encloses the value."""
    if id(value) in around:
        raise UsageError(f"{where}: holds itself")
    if len(around) > _DEPTH:
        raise UsageError(f"{where}: nested too deeply")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise UsageError(f"{where}: key {_short(key)} is no text: quote it")
            _check_json(f"{where}.{key}", inner, (*around, id(value)))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            _check_json(f"{where}[{number}]", inner, (*around, id(value)))
    elif isinstance(value, str):
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise UsageError(f"{where} ({_short(value)}): is not UTF-8")
    elif isinstance(value, int | float):
        if not math.isfinite(value) or (isinstance(value, int) and abs(value) > _WHOLE):
            raise UsageError(f"{where} ({_short(value)}): must be a number up to 2^53")
    elif value is not None:
        raise UsageError(
            f"{where} ({_short(value)}): a {type(value).__name__}, which JSON has not: quote it to "
            "make it text"
        )


def _value(name: str, values: list[str], kind: str) -> Any:
    text = values[0]
    if kind == "LIST":
        expected = "a list such as [a, b]"
        if len(values) > 1 or not text.startswith("["):
            return values
        return _checked(name, text, _yaml(name, text, expected), list, expected)
    if len(values) > 1:
        raise UsageError(f"parameter {name} is given {len(values)} times, and is not a list")
    if kind == "STRUCT":
        expected = "a mapping such as {key: value}"
        return _checked(name, text, _yaml(name, text, expected), dict, expected)
    if kind == "BOOLEAN":
        expected = "true or false"
        return _checked(name, text, _yaml(name, text.lower(), expected), bool, expected)
    if kind == "NUMBER_INTEGER":
        return _number(name, text, int, "a whole number")
    if kind == "NUMBER_DOUBLE":
        return _number(name, text, float, "a number")
    return text


def _yaml(name: str, text: str, expected: str) -> Any:
    try:
        return document.parse(text, f"parameter {name} ({_short(text)})")
    except UsageError as error:
        raise UsageError(f"{error}; must be {expected}") from None


def _checked(name: str, text: str, value: Any, kind: type, expected: str) -> Any:
    if not isinstance(value, kind):
        raise UsageError(f"parameter {name} ({_short(text)}): must be {expected}")
    return value


def _number(name: str, text: str, kind: Callable[[str], float], expected: str) -> float:
    try:
        return kind(text)
    except ValueError:
        raise UsageError(f"parameter {name} ({_short(text)}): must be {expected}") from None


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
