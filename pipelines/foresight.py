"""What a late step of the pipeline would refuse, told before the first one begins.

Each part of the parameters is read by the very step that takes it. What only the data can tell (is
there such a column?) is left to the steps; a Task of the user's own may have keys of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pipelines import parameters
from pipelines.compiled import Compiled
from trainer.errors import UsageError, suggestion

# The parts of a run that the pipeline itself decides.
_OWN_KEYS = {"shard_options": ("sources", "output", "append"), "config": ("data", "output", "task")}
_NAMES = {
    "sources", "label", "split", "null_values", "types", "drop", "label_kind", "seed",
    "shard_options", "baseline", "baseline_run", "validate_rules", "task", "steps", "epochs",
    "config", "evaluate_split", "thresholds", "formats",
}  # fmt: skip
_EMPTY_PLACE = re.compile(r"\s*([a-zA-Z][\w+.-]*:/*)?\s*")


def check(compiled: Compiled, arguments: Mapping[str, Any]) -> None:
    """Reads the arguments of train_evaluate_export; nothing is known of another pipeline.

    Raises:
      UsageError: a step would refuse one; says which, and why.
    """
    given = {**parameters.defaults(compiled.parameters), **arguments}
    # One that was compiled by another release may have others.
    if not compiled.target or not set(given) >= _NAMES:
        return
    for name, keys in _OWN_KEYS.items():
        for key in keys:
            if key in given[name]:
                raise UsageError(f"parameter {name}.{key}: the pipeline decides it; leave it out")
    splits = _check_shard(given)
    _check_validate(given)
    _check_train(given, splits)
    _check_evaluate(given, splits)
    _check_export(given)


def _check_shard(given: Mapping[str, Any]) -> Sequence[str]:
    """Returns the splits that there will be; none if only the data tells."""
    from components.shard_data import step
    from components.shard_data.options import ShardOptions

    sources = given["sources"]
    if not sources:
        raise UsageError("parameter sources ([]): name a table at least")
    for source in sources:
        if _EMPTY_PLACE.fullmatch(source):
            raise UsageError(f"parameter sources ({source!r}): names no table")
    for key in given["shard_options"]:
        if key not in ShardOptions.model_fields:
            near = suggestion(key, list(ShardOptions.model_fields))
            raise UsageError(f"parameter shard_options: no option {key!r}{near}")
    names = ("label", "split", "null_values", "types", "drop", "label_kind", "seed")
    try:
        options = step.options(
            sources, "dataset", {name: given[name] for name in names}, given["shard_options"]
        )
    except UsageError as error:
        raise _refused("shard-data", error) from None
    except (TypeError, AttributeError) as error:  # its readers of texts met something else
        raise UsageError(
            f"parameters types and shard_options: a value is of another kind ({error})"
        ) from None
    return [] if options.split_column is not None else list(options.split)


def _check_validate(given: Mapping[str, Any]) -> None:
    from components.validate_data import rules

    if given["baseline"] and given["baseline_run"]:
        raise UsageError("parameters baseline and baseline_run: name one of them")
    try:
        for rule in given["validate_rules"]:
            rules.parse(rule)
    except UsageError as error:
        raise _refused("validate-data", error) from None


def _check_train(given: Mapping[str, Any], splits: Sequence[str]) -> None:
    from components.steps import whole_numbers
    from components.train_model.step import lengths
    from trainer import config, tasks, users

    keys = {**whole_numbers(given["config"]), **lengths(given["steps"], given["epochs"])}
    task = given["task"]
    own = keys.pop("options", None) or {}
    try:
        if not isinstance(own, Mapping):
            raise UsageError(f"options ({own}): must be a mapping such as {{key: value}}")
        found = config.load(None, {"data": "data", "output": "run", "task": task, **keys, **own})
        # The module of a user's own may be in the image alone.
        is_own = users.is_name(task) and task not in tasks.BUILT_IN
        if options := None if is_own else tasks.options_class(task):
            config.parse_options(options, found.options)
    except UsageError as error:
        raise _refused("train-model", error) from None
    if found.eval_every and splits and found.eval_split not in splits:
        raise UsageError(_no_split("config.eval_split", found.eval_split, splits))


def _check_evaluate(given: Mapping[str, Any], splits: Sequence[str]) -> None:
    from components.evaluate_model import gate
    from trainer.data.manifest import LabelKind

    if splits and given["evaluate_split"] not in splits:
        raise UsageError(_no_split("evaluate_split", given["evaluate_split"], splits))
    kind = given["label_kind"] or given["shard_options"].get("label_kind")
    try:
        thresholds = [gate.parse(rule) for rule in given["thresholds"]]
        for rule in thresholds:
            if rule.baseline:
                raise UsageError(
                    f"--threshold {rule.written!r}: the pipeline evaluates without a baseline: "
                    "compare with a number"
                )
        gate.check(thresholds, kind if kind in get_args(LabelKind) else None, has_baseline=True)
    except UsageError as error:
        raise _refused("evaluate-model", error) from None


def _check_export(given: Mapping[str, Any]) -> None:
    from pydantic import ValidationError

    from components.export_model.options import ExportOptions
    from trainer.config import explain

    try:
        ExportOptions(run="run", output="model", formats=tuple(given["formats"]))
    except ValidationError as error:
        raise _refused("export-model", UsageError(explain(error))) from None


def _no_split(name: str, value: str, splits: Sequence[str]) -> str:
    near = suggestion(value, list(splits))
    return f"parameter {name} ({value}): no such split{near}: there are {', '.join(splits)}"


def _refused(step: str, error: UsageError) -> UsageError:
    return UsageError(f"step {step} would refuse this: {error}")
