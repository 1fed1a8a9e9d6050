"""Where a configuration comes from: flags over a YAML (or JSON) file over the defaults.

Keys that `keys` does not list belong to the Task (`Task.Options`) and are checked once the Task is
known.
"""

from __future__ import annotations

import argparse
import re
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError

from trainer import files
from trainer.config import document
from trainer.config.keys import GROUPS, TrainConfig
from trainer.config.truth import without_truth_values
from trainer.errors import UsageError, suggestion

# Characters of a value that an error repeats.
_LONGEST_VALUE = 60
# How pydantic calls the one of several types that it has tried.
_TRIED = re.compile(r"(dict|list|tuple|set|literal|function-[a-z]+|constrained-[a-z]+)\[.*\]")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Adds `--<key> VALUE` for every key; values stay text until pydantic reads them."""
    for title, group in GROUPS.items():
        section = parser.add_argument_group(title, group.__doc__)
        for name, field in group.model_fields.items():
            if name == "options":
                continue
            default = f" [{field.default}]" if field.default or field.default == 0 else ""
            section.add_argument(
                "--" + name.replace("_", "-"),
                dest=name,
                default=argparse.SUPPRESS,
                metavar=metavar(field.annotation),
                help=f"{field.description}{'' if field.is_required() else default}",
            )


def metavar(annotation: Any) -> str:
    """Returns how a value is written: N, X, TEXT, on|off, one|of|these, A,… or CLASS=X,…

    VALUE for a type that only a user's Task has.
    """
    if get_origin(annotation) is Literal:
        return "|".join(map(str, get_args(annotation)))
    if get_origin(annotation) is tuple:
        return f"{metavar(get_args(annotation)[0])},…"
    inner = [a for a in get_args(annotation) if a is not type(None)]
    if get_origin(annotation) is dict:
        return "CLASS=X,…"
    if inner:
        return metavar(inner[0])
    return {str: "TEXT", int: "N", float: "X", bool: "on|off"}.get(annotation, "VALUE")


def load(file: str | None, flags: dict[str, Any]) -> TrainConfig:
    """Returns the configuration of `file` (YAML or JSON) with `flags` over it.

    Unknown top-level keys go to `options`: only the Task can tell whether they are right.

    Raises:
      UsageError: the file is not a mapping, or a value is missing or not allowed.
    """
    values = _read(file) if file else {}
    values = _by_name([(key, key, value) for key, value in values.items()], file)
    values.pop("dataset_fingerprint", None)  # what a run's config.json has beside its configuration
    if "options" in flags:
        raise UsageError("--options is no flag: pass the Task's keys as flags of their own")
    inner = values.pop("options", None) or {}
    if not isinstance(inner, dict):
        raise UsageError(f"options ({_short(inner)}): expected `key: value` lines")
    own = [(key, key, v) for key, v in values.items() if key not in TrainConfig.model_fields]
    options = _by_name([*((f"options.{key}", key, v) for key, v in inner.items()), *own], file)
    merged: dict[str, Any] = {k: v for k, v in values.items() if k not in options}
    for key, value in flags.items():
        name = key.replace("-", "_")
        (merged if name in TrainConfig.model_fields else options)[name] = value
    for key, value in merged.items():
        _check_characters(key, value)
    try:
        return TrainConfig.model_validate({**merged, "options": options})
    except ValidationError as error:
        raise UsageError(explain(error)) from None


def _by_name(entries: list[tuple[str, str, Any]], file: str | None) -> dict[str, Any]:
    """Returns values by key, with "_" for "-"; two of the same name are an error.

    entries: how the file calls the key, the key, its value.
    """
    values: dict[str, Any] = {}
    calls: dict[str, str] = {}
    for written, key, value in entries:
        name = key.replace("-", "_")
        if name in values:
            raise UsageError(
                f"--config {file}: {calls[name]} and {written} are the same key: keep one"
            )
        values[name], calls[name] = value, written
    return values


def _check_characters(key: str, value: Any) -> None:
    """Refuses what no path, module or column can be called, or TensorFlow cannot read."""
    for text in value if isinstance(value, list) else [value]:
        if not isinstance(text, str):
            continue
        if "\0" in text or text.encode(errors="ignore").decode() != text:
            raise UsageError(f"{key} ({_short(ascii(text))}): names are UTF-8 without NUL")


def _read(path: str) -> dict[str, Any]:
    try:
        text = files.read_text(path)
    except FileNotFoundError:
        raise UsageError(f"--config {path}: no such file") from None
    except UnicodeDecodeError:
        raise UsageError(f"--config {path} is no text (not UTF-8)") from None
    except files.read_errors(ValueError, ImportError) as error:
        raise UsageError(f"--config {path} cannot be read: {files.reason(error)}") from None
    values = document.parse(text, f"--config {path}")
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise UsageError(f"--config {path}: expected `key: value` lines, got {_short(values)}")
    return {str(key): value for key, value in values.items()}


def parse_options(options_class: type[BaseModel], options: dict[str, Any]) -> Any:
    """Returns the Task's options; a key that neither it nor TrainConfig knows is an error."""
    own = list(options_class.model_fields)
    for key in options:
        if key in TrainConfig.model_fields and key not in own:
            raise UsageError(f"config key {key!r} stands beside `options`, not inside it")
        if key not in own:
            near = suggestion(key, own + list(TrainConfig.model_fields))
            raise UsageError(f"unknown config key {key!r}{near} (see --help)")
    try:
        read = without_truth_values(options, options_class.model_fields)
    except ValueError as error:
        raise UsageError(str(error)) from None
    try:
        return options_class.model_validate(read)
    except ValidationError as error:
        raise UsageError(explain(error)) from None


def stored(content: dict[str, Any], name: str) -> TrainConfig:
    """Returns the configuration in a run's config.json; keys of another version are passed over.

    name: of the file, for the error.

    Raises:
      UsageError: it is no configuration.
    """
    known = {key: value for key, value in content.items() if key in TrainConfig.model_fields}
    try:
        return TrainConfig.model_validate(known)
    except ValidationError as error:
        first = error.errors()[0]
        missing = first["type"] == "missing"
        what = f"{first['loc'][0]} is missing" if missing else explain(error)
        raise UsageError(f"{name} is damaged ({what}): choose another run") from None


def explain(error: ValidationError) -> str:
    """Returns pydantic's first complaint as one line: key, value, rule."""
    first = error.errors()[0]
    key = ".".join(part for part in map(str, first["loc"]) if not _TRIED.fullmatch(part))
    if first["type"] == "missing":
        return f"{key} is required: pass --{key.replace('_', '-')}"
    if key and first["input"] is None:
        return f"{key} is empty: give it a value, or leave the line out"
    message = first["msg"].removeprefix("Value error, ")
    if not key:
        return message
    return f"{key} ({_short(first['input'])}): {message[0].lower()}{message[1:]}"


def _short(value: Any) -> str:
    try:
        text = str(value)
    except ValueError:  # an int of more digits than Python spells out
        return "a huge number"
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."
