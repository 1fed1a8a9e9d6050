"""True and false where no key wants them: YAML makes them of on, off, yes and no.

Pydantic would take `steps: yes` for one step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import EllipsisType, NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo


def without_truth_values(
    values: Mapping[str, Any], fields: Mapping[str, FieldInfo]
) -> dict[str, Any]:
    """Returns `values` with "on" and "off" where a key has these words and YAML brought a bool.

    Raises:
      ValueError: true or false stands in a key of numbers or words.
    """
    read = dict(values)
    for key, value in values.items():
        if key not in fields:
            continue
        allowed = set(_leaves(fields[key].annotation))
        if "on" in allowed and isinstance(value, bool):
            read[key] = "on" if value else "off"
        elif all(map(_is_no_truth_value, allowed)):
            for place, found in _within(key, value):
                if isinstance(found, bool):
                    raise ValueError(f"{place} ({found}): {_advice(allowed)}")
    return read


def _is_no_truth_value(leaf: Any) -> bool:
    """Whether a type, or a word of a Literal, is one that no true or false fits."""
    word = isinstance(leaf, str | int) and not isinstance(leaf, bool)
    return word or leaf in (int, float, str)


def _advice(allowed: set[Any]) -> str:
    if str in allowed and not {int, float} & allowed:
        return "YAML takes a bare yes, no, on or off for true or false: put it in quotes"
    return "this key takes no true or false"


def _within(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the value and what is in it, with how errors call each."""
    yield key, value
    if isinstance(value, dict):
        yield from ((f"{key}.{name}", item) for name, item in value.items())
    elif isinstance(value, list | tuple):
        yield from ((f"{key}.{place}", item) for place, item in enumerate(value))


def _leaves(annotation: Any) -> Iterator[Any]:
    """Yields the types that a value may be made of, and the words of a Literal."""
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    elif get_origin(annotation) is Annotated:
        yield from _leaves(get_args(annotation)[0])
    elif parts := get_args(annotation):
        for part in parts:
            yield from _leaves(part)
    elif not isinstance(annotation, EllipsisType) and annotation is not NoneType:
        yield annotation
