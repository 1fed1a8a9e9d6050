"""Warm start: the first weights of a run are the trained ones of another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import tensorflow as tf

from trainer.errors import UsageError
from trainer.run import checkpoint
from trainer.run.choice import find


def initial_values(
    source: str,
    variables: Mapping[str, tf.Variable],
    skip: Collection[str] = (),
    *,
    spelt: Callable[[str], str] = str,
) -> str:
    """Assigns weights, by name, from another run's best checkpoint, or else its newest.

    Every process of a cluster calls it for itself, as `checkpoint.restore`; its averages are taken
    where it has them. What it has beside `variables` (an optimizer's, say) is left alone.

    Args:
      source: run directory, its `checkpoints`, or one checkpoint in there.
      variables: the Task's, by their names in a checkpoint.
      skip: names among them that keep their initial values.
      spelt: how the user calls a variable, for errors.

    Returns:
      A line that says how many were taken from where.

    Raises:
      UsageError: no checkpoint there, or weights that are missing there or have another shape or
        dtype (they are listed; nothing is assigned).
    """
    choice = find(source)
    saved = checkpoint.contents(choice.commit)
    wanted = {name: variable for name, variable in variables.items() if name not in skip}
    described = {name: checkpoint.describe(variable) for name, variable in wanted.items()}
    differing = [f"{spelt(name)} is not there" for name in wanted if name not in saved]
    differing += checkpoint.unlike(saved, described, spelt)
    if differing:
        raise UsageError(
            f"--init-from {source} ({choice.why}): {checkpoint.listed(differing)}; name with "
            "--init-skip what is to keep its initial values"
        )
    checkpoint.assign(choice.commit, wanted, averaged=True)
    averages = sum(checkpoint.AVERAGES + name in saved for name in wanted)
    return (
        f"initial weights: {len(wanted)} of {len(variables)} from {source} ({choice.why}"
        f"{f', {averages} of them averages' if averages else ''})"
    )
