"""The settings of a target: flag, else environment variable, else one YAML file.

`castell.yaml` has a section a target; `CASTELL_VERTEX_PROJECT` and `--project` say the same as
`project` in section `vertex`. What a section holds stands beside its owner, in
`pipelines/targets/<target>/settings.py`.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import re
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from trainer.config import document
from trainer.errors import UsageError, suggestion

DEFAULT_FILE = "castell.yaml"
SECTIONS = {
    "kfp": ("pipelines.targets.kfp.settings", "KfpSettings"),
    "vertex": ("pipelines.targets.vertex.settings", "VertexSettings"),
}

# Defaults that need no word.
# What Kubernetes tells every container of a Service that is called castell-kfp.
_OF_A_SERVICE = re.compile(
    r"SERVICE_HOST|SERVICE_PORT(_.*)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?"
)
_UNSAID: tuple[Any, ...] = ("", None, (), {})


class Section(BaseModel):
    """A target's settings: none is unknown, none changes; errors show none with `repr=False`."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False
    )


def model_of(target: str) -> type[Section] | None:
    """Returns the settings class of a target, None for one without."""
    if target not in SECTIONS:
        return None
    module, name = SECTIONS[target]
    found: type[Section] = getattr(importlib.import_module(module), name)
    return found


def add_flags(
    parser: argparse.ArgumentParser, only: Mapping[str, Collection[str]] | None = None
) -> None:
    """Declares `--settings` and a flag for every key of every section; `only`: for these keys."""
    parser.add_argument(
        "--settings", metavar="FILE", help=f"settings of the targets [{DEFAULT_FILE}, if there]"
    )
    told: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    for target in SECTIONS:
        for key, field in _fields(target).items():
            if only is not None and key not in only.get(target, ()):
                continue
            told.setdefault(key, []).append(target)
            default = "" if field.default in _UNSAID else f" [{field.default}]"
            texts.setdefault(key, f"{field.description or ''}{default}")
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
    _warn_of_strangers(environ)
    prefix = _prefix(target)
    from_environ = {
        name.removeprefix(prefix).lower(): value
        for name, value in environ.items()
        if name.startswith(prefix) and not _OF_A_SERVICE.fullmatch(name.removeprefix(prefix))
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
            is_text = spell is not in_file
            values[key] = (
                _read_text(spell(key), value, fields[key].annotation) if is_text else value
            )
    try:
        return model(**values)
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0]) if first["loc"] else ""
        said = first["msg"].removeprefix("Value error, ")
        thing = where.get(key, key or target)
        if key in where and fields[key].repr:
            thing += f" ({values[key]})"
        said += _form(values.get(key), fields[key].annotation) if key in where else ""
        said += ": quote it" if first["type"] == "string_type" and _is_plain(first["input"]) else ""
        raise UsageError(f"{thing}: {said[0].lower()}{said[1:]}") from None


def _fields(target: str) -> dict[str, Any]:
    model = model_of(target)
    return dict(model.model_fields) if model else {}


def flag(key: str) -> str:
    """Returns how a key is written on the command line."""
    return "--" + key.replace("_", "-")


def _prefix(target: str) -> str:
    return f"CASTELL_{target.upper()}_"


def _warn_of_strangers(environ: Mapping[str, str]) -> None:
    """Names variables that would be settings if their target were one: CASTELL_VERTX_PROJECT."""
    keys = {key for target in SECTIONS for key in _fields(target)}
    for name in environ:
        _, castell, rest = name.partition("CASTELL_")
        if not castell or name.startswith(tuple(_prefix(target) for target in SECTIONS)):
            continue
        target, _, key = rest.lower().partition("_")
        if key in keys:
            near = suggestion(target, list(SECTIONS))
            print(f"castell: {name} is ignored: no target {target!r}{near}", file=sys.stderr)


def _read_text(name: str, text: str, kind: Any) -> Any:
    """Reads a list or a mapping out of a flag or a variable; any other text stays text.

    Where texts are listed, or mapped to texts, commas do as well as YAML: a,b and a=1,b=2.
    """
    if kind is str:
        return text
    if text[:1] in ("[", "{"):
        try:
            return document.parse(text, name)
        except UsageError as error:
            raise UsageError(f"{error}: no YAML list or mapping ({text[:80]})") from None
    parts = [part.strip() for part in text.split(",")] if text else []
    if kind == tuple[str, ...]:
        return parts
    pairs = [part.partition("=") for part in parts]
    if kind == dict[str, str] and all(key and equals for key, equals, _ in pairs):
        if len({key for key, _, _ in pairs}) < len(pairs):
            raise UsageError(f"{name} ({text}): a key stands there twice: keep one")
        return {key: value for key, _, value in pairs}
    return text


def _is_plain(value: Any) -> bool:
    """Whether YAML took a word for something else: 12, yes, 2026-01-01."""
    return not isinstance(value, list | dict | None)


def _form(value: Any, kind: Any) -> str:
    """Returns how a list or a mapping is written, for a text that is none."""
    if not isinstance(value, str):
        return ""
    if kind == dict[str, str]:
        return ": write KEY=VALUE,KEY=VALUE or {KEY: VALUE, …}"
    return ": write [{KEY: VALUE, …}, …]" if getattr(kind, "__origin__", None) is tuple else ""


def _file(file: str | None) -> dict[str, dict[str, Any]]:
    path = Path(file or DEFAULT_FILE)
    name = f"--settings {file}" if file else str(path)
    if not os.path.exists(path):  # a long name makes Path raise
        if file:
            raise UsageError(f"{name}: no such file")
        return {}
    try:
        sections = document.parse(io.StringIO(path.read_text()), str(path))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not YAML: {error.reason}") from None
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}: must be a file that can be read") from None
    if sections is None:
        return {}
    if not isinstance(sections, dict):
        raise UsageError(f"{path}: must hold sections: {', '.join(SECTIONS)}")
    for section, content in sections.items():
        if section not in SECTIONS:
            near = suggestion(section, list(SECTIONS))
            raise UsageError(
                f"{path}: no section {section!r}{near}: there are {', '.join(SECTIONS)}"
            )
        if not isinstance(content, dict | None):
            raise UsageError(f"{path}: section {section}: must hold keys with values")
    # One with all its keys commented out holds nothing.
    return {section: content or {} for section, content in sections.items()}
