"""The settings of a target: flag, else environment variable, else one YAML file.

`castell.yaml` has a section a target; `CASTELL_VERTEX_PROJECT` and `--project` say the same as
`project` in section `vertex`. What a section holds stands beside its owner, in
`pipelines/targets/<target>/settings.py`.
"""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from trainer.errors import UsageError, suggestion

DEFAULT_FILE = "castell.yaml"
SECTIONS = {
    "kfp": ("pipelines.targets.kfp.settings", "KfpSettings"),
    "vertex": ("pipelines.targets.vertex.settings", "VertexSettings"),
}


class Section(BaseModel):
    """A target's settings: none is unknown, none changes."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


def model_of(target: str) -> type[Section] | None:
    """Returns the settings class of a target, None for one without."""
    if target not in SECTIONS:
        return None
    module, name = SECTIONS[target]
    found: type[Section] = getattr(importlib.import_module(module), name)
    return found


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Declares `--settings` and a flag for every key of every section."""
    parser.add_argument(
        "--settings", metavar="FILE", help=f"settings of the targets [{DEFAULT_FILE}, if there]"
    )
    told: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    for target in SECTIONS:
        for key, field in _fields(target).items():
            told.setdefault(key, []).append(target)
            texts.setdefault(key, field.description or "")
    group = parser.add_argument_group(
        "settings", "also keys of castell.yaml, by target, and CASTELL_<TARGET>_<KEY>"
    )
    for key, targets in told.items():
        # Before `%`, argparse would look for a format.
        text = f"{', '.join(targets)}: {texts[key]}".replace("%", "%%")
        group.add_argument(flag(key), dest=f"set_{key}", metavar="VALUE", help=text)


def given_flags(args: argparse.Namespace) -> dict[str, str]:
    """Returns the settings that the command line holds."""
    return {
        name.removeprefix("set_"): value
        for name, value in vars(args).items()
        if name.startswith("set_") and value is not None
    }


def read(
    target: str, flags: Mapping[str, str], *, file: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Any:  # fmt: skip
    """Returns the settings of a target, an instance of its class; None if it has none.

    Raises:
      UsageError: a key is unknown, a value is wrong, or the file cannot be read.
    """
    model = model_of(target)
    if model is None:
        if flags or file:
            name = flag(next(iter(flags))) if flags else "--settings"
            raise UsageError(f"{name}: target {target} has no settings")
        return None
    sections = _file(file)
    fields = _fields(target)
    for key in flags:
        if key not in fields:
            raise UsageError(f"{flag(key)}: no setting of target {target}")
    prefix = f"CASTELL_{target.upper()}_"
    from_environ = {
        name.removeprefix(prefix).lower(): value
        for name, value in environ.items()
        if name.startswith(prefix)
    }

    def in_file(key: str) -> str:
        return f"{file or DEFAULT_FILE}: {target}.{key}"

    where: dict[str, str] = {}
    values: dict[str, Any] = {}
    for spell, given in (
        (in_file, sections.get(target, {})),
        (lambda key: prefix + key.upper(), from_environ),
        (flag, flags),
    ):
        for key, value in given.items():
            if key not in fields:
                near = suggestion(str(key), list(fields))
                raise UsageError(f"{spell(key)}: no such setting{near}")
            where[key] = spell(key)
            values[key] = value if spell is in_file else _read_text(spell(key), value)
    try:
        return model(**values)
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0]) if first["loc"] else ""
        said = first["msg"].removeprefix("Value error, ")
        thing = f"{where[key]} ({values[key]})" if key in where else key or target
        raise UsageError(f"{thing}: {said[0].lower()}{said[1:]}") from None


def _fields(target: str) -> dict[str, Any]:
    model = model_of(target)
    return dict(model.model_fields) if model else {}


def flag(key: str) -> str:
    """Returns how a key is written on the command line."""
    return "--" + key.replace("_", "-")


def _read_text(name: str, text: str) -> Any:
    """Reads a list or a mapping out of a flag or a variable; any other text stays text."""
    if text[:1] not in ("[", "{"):
        return text
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise UsageError(f"{name} ({text}): no YAML list or mapping") from None


def _file(file: str | None) -> dict[str, dict[str, Any]]:
    path = Path(file or DEFAULT_FILE)
    if not path.is_file():
        if file:
            raise UsageError(f"--settings {file}: no such file")
        return {}
    try:
        sections = yaml.safe_load(path.read_text()) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        said = " ".join(str(error).split())
        raise UsageError(f"{path}: no YAML: {said}") from None
    if not isinstance(sections, dict):
        raise UsageError(f"{path}: must hold sections: {', '.join(SECTIONS)}")
    for name, section in sections.items():
        if name not in SECTIONS:
            near = suggestion(str(name), list(SECTIONS))
            raise UsageError(f"{path}: no section {name!r}{near}: there are {', '.join(SECTIONS)}")
        if not isinstance(section, dict):
            raise UsageError(f"{path}: section {name}: must hold keys with values")
    return sections
