"""The keys of tasks for `--help`: of the built-in ones, or of the one that the command names."""

from __future__ import annotations

from typing import Any

from trainer.config.read import metavar
from trainer.errors import UsageError
from trainer.tasks import BUILT_IN, BUILT_IN_OPTIONS, options_class, task_class


def described_keys(task: str | None) -> str:
    """Returns a paragraph for each task with a line for each of its keys.

    Args:
      task: a user's own as pkg.module:Class, which is imported (help shows what it can: a module
        that cannot be imported is one line); None or a built-in one: all that are built in.
    """
    if task is None or task in BUILT_IN:
        return "\n\n".join(
            f"the {name} task's own keys:\n{_lines(options_class(name))}"
            for name in BUILT_IN_OPTIONS
        )
    try:
        options = task_class(task).Options
    except UsageError as error:
        return f"no keys of your task: {error}"
    except Exception as error:
        words = " ".join(f"{type(error).__name__}: {error}".split())
        return f"no keys of your task: --task {task} cannot be imported ({words})"
    return f"the keys of {task}:\n{_lines(options) or '  none'}"


def _lines(options: Any) -> str:
    """A line for each key: its flag, what it is, its default where the text does not say it."""
    lines = []
    for name, field in options.model_fields.items():
        flag = f"--{name.replace('_', '-')} {metavar(field.annotation)}"
        lines.append(f"  {flag:30} {field.description or ''}{_default(field)}".rstrip())
    return "\n".join(lines)


def _default(field: Any) -> str:
    if field.is_required():
        return " (required)"
    value = field.default
    if isinstance(value, bool):
        value = "on" if value else "off"
    if isinstance(value, tuple):
        value = ",".join(map(str, value)) or "none"
    return "" if value is None else f" [{value}]"
