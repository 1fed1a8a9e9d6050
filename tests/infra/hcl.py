"""Terraform files as plain Python: what is declared, and what is referred to."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import hcl2

FOLDER = Path(__file__).parents[2] / "infra" / "terraform"
# What begins an expression's name: var.x, local.x, data.type.name, type.name.
_REFERENCE = re.compile(
    r"(?<![\w.\"-])(?:(var|local)\.(\w+)|(data\.)?(google_\w+)\.(\w+))(?![\w-]*\s*=[^=])"
)


@dataclass
class Module:
    """The blocks of all files: type and name of resources, names of the rest, with their bodies."""

    variables: dict[str, dict[str, Any]] = field(default_factory=dict)
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    local_values: dict[str, Any] = field(default_factory=dict)
    resources: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    data: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    references: dict[str, set[str]] = field(default_factory=dict)


def files() -> list[Path]:
    return sorted(FOLDER.glob("*.tf"))


@cache
def module() -> Module:
    found = Module()
    for path in files():
        parsed = plain(hcl2.loads(path.read_text()))
        for block in parsed.get("variable", []):
            found.variables.update(block)
        for block in parsed.get("output", []):
            found.outputs.update(block)
        for block in parsed.get("locals", []):
            found.local_values.update(block)
        for kind, into in (("resource", found.resources), ("data", found.data)):
            for block in parsed.get(kind, []):
                for type_, named in block.items():
                    into.update({(type_, name): body for name, body in named.items()})
        found.references[path.name] = set(references(parsed))
    return found


def plain(value: Any) -> Any:
    """Takes the parser's own keys and the quotes of literal strings away."""
    if isinstance(value, dict):
        return {
            key.strip('"'): plain(inner)
            for key, inner in value.items()
            if not (key.startswith("__") and key.endswith("__"))
        }
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
        return value[1:-1]
    return value


def references(value: Any) -> list[str]:
    """Yields all names that expressions in a parsed value refer to: `var.x`, `google_x.y`, …."""
    if isinstance(value, dict):
        return [name for pair in value.items() for part in pair for name in references(part)]
    if isinstance(value, list):
        return [name for inner in value for name in references(inner)]
    if not isinstance(value, str):
        return []
    return [
        f"{kind}.{name}" if kind else f"{data or ''}{type_}.{resource}"
        for kind, name, data, type_, resource in _REFERENCE.findall(value)
    ]
