"""Saving and restoring a run's variables: all of a step's values, or none of them.

The chief saves, every worker restores from the same files. Variables are stored by the names that
the caller gives, in TensorFlow's own bundle format (`tf.train.load_checkpoint(path + "/variables")`
reads it); no object graph is involved, because restoring another graph restores nothing without a
word. What makes a directory count as a checkpoint stands in `commits`.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from trainer.errors import CastellError, UsageError
from trainer.run import atomic, belonging, commits
from trainer.run.commits import Commit, commit_at, latest

__all__ = [
    "AVERAGES",
    "Commit",
    "SaveFailed",
    "assign",
    "commit_at",
    "contents",
    "describe",
    "latest",
    "listed",
    "restore",
    "save",
    "snapshot",
    "unlike",
    "write",
]

# Before the name of a variable whose average over the last steps is kept too.
AVERAGES = "ema/"
_BUNDLE = "variables"
# Differing variables that an error spells out.
_LISTED = 20


class SaveFailed(CastellError):
    """The checkpoint could not be written; earlier ones are as they were."""


def save(
    directory: str,
    step: int,
    variables: Mapping[str, tf.Variable],
    meta: dict[str, Any],
    keep: int,
) -> Commit:
    """Writes a checkpoint, now, and deletes all but the newest `keep`; see `snapshot`, `write`.

    `saver.Saver` does the same while training goes on.
    """
    commit = write(directory, step, snapshot(variables), meta)
    commits.prune(directory, step, keep)
    return commit


def snapshot(variables: Mapping[str, tf.Variable]) -> dict[str, tf.Tensor]:
    """Returns the values of this moment, in host memory, for `write` in any thread.

    On the host nothing is copied here: value and variable share a buffer, and the first update of
    each variable makes a copy of it as long as the value is held. From another device the values
    are copied at once, whose memory a second copy might not fit in.

    Only the chief calls it. Nothing here is a collective, so no variable may be one that is
    aggregated on reading (metrics, for instance).

    Args:
      variables: unique, stable name to tf.Variable or distributed variable; not a Keras variable.
    """
    with tf.device("CPU:0"):
        return {n: tf.identity(_local_value(n, variable)) for n, variable in variables.items()}


def write(
    directory: str, step: int, values: Mapping[str, tf.Tensor], meta: dict[str, Any]
) -> Commit:
    """Writes the checkpoint of `step`: data first, COMMIT last.

    Args:
      directory: the run's checkpoints; created if missing.
      step: optimizer steps done; a checkpoint of the same step is replaced.
      values: what `snapshot` returned.
      meta: JSON values kept beside the data.

    Raises:
      SaveFailed: disk full or not writable; earlier checkpoints are untouched and nothing
        half-written remains.
    """
    name = commits.step_name(step)
    temporary = os.path.join(directory, commits.SAVING_PREFIX + name)
    try:
        os.makedirs(directory, exist_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        os.mkdir(temporary)
        _write_bundle(temporary, values)
        return _publish(temporary, os.path.join(directory, name), step, values, meta)
    except (OSError, tf.errors.OpError) as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise SaveFailed(
            f"checkpoint of step {step} in {directory} could not be written: {_why(error)}"
        ) from error


def restore(
    commit: Commit,
    variables: Mapping[str, tf.Variable],
    identity: Mapping[str, Any] | None = None,
    *,
    averaged: bool = False,
) -> None:
    """Assigns the saved values; every process of a cluster calls it for itself.

    Works inside and outside a strategy's scope, in a cross-replica context, without a collective.

    Args:
      commit: what `latest` or `commit_at` returned.
      variables: as given to `save`: the same names, shapes and dtypes. A whole group (names with
        the same first part, as `optimizer/…`) may be left out: serving needs no optimizer.
      identity: what the run here is (`belonging.identity`); default: not compared.
      averaged: where the checkpoint holds a variable's average (AVERAGES + name), take that.

    Raises:
      UsageError: the checkpoint is another run's (the differing keys are listed), names, shapes or
        dtypes differ (they are listed; nothing is assigned), or the files were damaged after
        `commit` was looked at.
    """
    if identity is not None:
        belonging.check(commit, identity)
    saved = contents(commit)
    _check_fit(commit, saved, {name: describe(v) for name, v in variables.items()})
    assign(commit, variables, averaged=averaged)


def contents(commit: Commit) -> dict[str, Any]:
    """Returns name -> {"shape", "dtype"} of the variables in a checkpoint.

    Raises:
      UsageError: it was damaged after `commit` was looked at.
    """
    variables: dict[str, Any] = _reading(commit, lambda: commits.read(commit.path))["variables"]
    return variables


def assign(commit: Commit, variables: Mapping[str, tf.Variable], *, averaged: bool = False) -> None:
    """Assigns the saved values of `variables`, which must all be there and fit; see `restore`."""
    saved = contents(commit)
    prefix = os.path.join(commit.path, _BUNDLE)
    reader = _reading(commit, lambda: tf.train.load_checkpoint(prefix))
    for name, variable in variables.items():
        source = AVERAGES + name if averaged and AVERAGES + name in saved else name
        variable.assign(_reading(commit, functools.partial(reader.get_tensor, source)))


def _reading(commit: Commit, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (commits.NotWhole, tf.errors.OpError, ValueError) as error:
        raise UsageError(
            f"checkpoint {commit.path} cannot be read: {_why(error)}; delete it to go on from an "
            "earlier one"
        ) from error


def _local_value(name: str, variable: Any) -> tf.Tensor:
    if variable.synchronization == tf.VariableSynchronization.ON_READ:
        # Reading it is a collective in which the other workers take no part: a hang for ever.
        raise ValueError(f"variable {name!r} is aggregated on reading and cannot be saved")
    return variable.read_value()


def _write_bundle(path: str, values: Mapping[str, tf.Tensor]) -> None:
    with tf.device("CPU:0"):
        tf.raw_ops.SaveV2(
            prefix=os.path.join(path, _BUNDLE),
            tensor_names=list(values),
            shape_and_slices=[""] * len(values),
            tensors=list(values.values()),
        )
    for name in os.listdir(path):
        # TensorFlow closes its files without waiting for the disk.
        descriptor = os.open(os.path.join(path, name), os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _publish(
    temporary: str,
    path: str,
    step: int,
    values: Mapping[str, tf.Tensor],
    meta: dict[str, Any],
) -> Commit:
    """Renames the complete data into place and commits it; on an error the old state is back."""
    directory, name = os.path.split(path)
    replaced = os.path.join(directory, commits.DISCARDED_PREFIX + name)
    shutil.rmtree(replaced, ignore_errors=True)
    had_one = os.path.exists(path)
    if had_one:
        os.rename(path, replaced)
    try:
        os.rename(temporary, path)
        described = {name: describe(value) for name, value in values.items()}
        commit = commits.write(path, step, described, meta)
        atomic.sync_directory(directory)
    except OSError:
        shutil.rmtree(path, ignore_errors=True)
        if had_one:
            os.rename(replaced, path)
        raise
    return commit


def describe(value: Any) -> dict[str, Any]:
    """Returns {"shape", "dtype"} of a variable or tensor, as COMMIT.json has it."""
    return {"shape": list(value.shape), "dtype": tf.as_dtype(value.dtype).name}


def _check_fit(commit: Commit, saved: dict[str, Any], wanted: dict[str, Any]) -> None:
    groups = {name.partition("/")[0] for name in wanted}
    differing = [
        f"{name} is only in the checkpoint"
        for name in sorted(saved.keys() - wanted)
        if name.partition("/")[0] in groups
    ]
    differing += [f"{name} is not in it" for name in sorted(wanted.keys() - saved)]
    differing += unlike(saved, wanted)
    if differing:
        raise UsageError(
            f"checkpoint {commit.path} is of another Task or configuration: {listed(differing)}"
        )


def unlike(
    saved: Mapping[str, Any],
    wanted: Mapping[str, Any],
    spelt: Callable[[str], str] = str,
) -> list[str]:
    """Says of each variable in both, described, whose shape or dtype differs, how it does."""
    return [
        f"{spelt(name)} is {_spell(saved[name])} there and {_spell(wanted[name])} here"
        for name in sorted(saved.keys() & wanted)
        if saved[name] != wanted[name]
    ]


def listed(differing: Sequence[str]) -> str:
    """Returns the first of many remarks in one line, and how many more there are."""
    more = f"; and {len(differing) - _LISTED} more" if len(differing) > _LISTED else ""
    return "; ".join(differing[:_LISTED]) + more


def _spell(described: dict[str, Any]) -> str:
    return f"{described['dtype']}{described['shape']}"


def _why(error: BaseException) -> str:
    """The error's first line without TensorFlow's graph prefix."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    message = error.message if isinstance(error, tf.errors.OpError) else str(error)
    lines = message.split("}} ")[-1].strip().splitlines()
    # "{{function_node …}} <file>.tempstate123; No space left on device [Op:SaveV2]"
    return re.sub(r"^\S*\.tempstate\d+; | \[Op:\w+\]$", "", lines[0]) if lines else repr(error)
