"""`--param KEY=VALUE` read by the types that the compiled pipeline declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml

from trainer.errors import UsageError, suggestion

_FORMS = {
    "LIST": "list: [a, b]",
    "STRUCT": "mapping: {a: 1}",
    "BOOLEAN": "true or false",
    "NUMBER_INTEGER": "whole number",
    "NUMBER_DOUBLE": "number",
}


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


def check_thresholds(arguments: Mapping[str, Any]) -> None:
    """Reads the rules of an argument `thresholds`, so that a wrong one costs no hours of training.

    Raises:
      UsageError: it is no rule.
    """
    from components.evaluate_model import gate

    for rule in arguments.get("thresholds", ()):
        gate.parse(rule)


def table(declared: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Returns a line a parameter: name, how it is written, default, meaning."""
    lines = []
    for name, declaration in declared.items():
        default = "" if not declaration.get("isOptional") else declaration.get("defaultValue")
        shown = "required" if default == "" and "isOptional" not in declaration else repr(default)
        form = _FORMS.get(declaration["parameterType"], "text")
        lines.append(f"{name:16} {form:16} [{shown}] {declaration.get('description', '')}")
    return lines


def _value(name: str, values: list[str], kind: str) -> Any:
    if kind == "LIST":
        read = _yaml(values[0]) if len(values) == 1 and values[0].startswith("[") else values
        return _checked(name, values[0], read, list, "a list such as [a, b]")
    if len(values) > 1:
        raise UsageError(f"parameter {name} is given {len(values)} times, and is not a list")
    text = values[0]
    if kind == "STRUCT":
        return _checked(name, text, _yaml(text), dict, "a mapping such as {key: value}")
    if kind == "BOOLEAN":
        return _checked(name, text, _yaml(text.lower()), bool, "true or false")
    if kind == "NUMBER_INTEGER":
        return _number(name, text, int, "a whole number")
    if kind == "NUMBER_DOUBLE":
        return _number(name, text, float, "a number")
    return text


def _yaml(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def _checked(name: str, text: str, value: Any, kind: type, expected: str) -> Any:
    if not isinstance(value, kind):
        raise UsageError(f"parameter {name} ({text}): must be {expected}")
    return value


def _number(name: str, text: str, kind: Callable[[str], float], expected: str) -> float:
    try:
        return kind(text)
    except ValueError:
        raise UsageError(f"parameter {name} ({text}): must be {expected}") from None
