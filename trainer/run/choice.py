"""Which checkpoint of a run is meant: a step, the best, the newest, or what is most sensible."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from trainer.errors import UsageError
from trainer.run import commits, marks
from trainer.run.commits import Commit

BEST, NEWEST = "best", "newest"


def _parsed(value: Any) -> Any:
    if value is None or value in (BEST, NEWEST):
        return value
    try:
        step = int(value)
    except (ValueError, TypeError, OverflowError):
        step = -1
    if step < 0:
        raise ValueError(f"give a step, {BEST} or {NEWEST}")
    return step


Which = Annotated[int | Literal["best", "newest"] | None, BeforeValidator(_parsed)]


@dataclass(frozen=True)
class Choice:
    """A whole checkpoint. why: "step 900, best auc 0.93", "step 1000, the newest"."""

    commit: Commit
    why: str


def choose(
    directory: str, which: Which = None, report: Callable[[str], None] = lambda line: None
) -> Choice:
    """Returns a whole checkpoint of a run's `checkpoints` directory.

    Args:
      directory: where the commits are.
      which: a step, "best", "newest"; None: the best if the run marked one, else the newest.
      report: gets one line for each newer one that is passed over.

    Raises:
      UsageError: there is no such checkpoint, or it is not whole.
    """
    if isinstance(which, int):
        return Choice(commits.commit_at(directory, which), f"step {which:,}, as asked for")
    if which != NEWEST and (found := marks.best(directory)):
        commit, mark = found
        return Choice(commit, f"step {commit.step:,}, best {mark.metric} {mark.value:.4g}")
    if which == BEST:
        raise UsageError(
            f"{directory} has no checkpoint that is marked as the best: take the newest, or train "
            "with --eval-every and --keep-best"
        )
    newest = commits.latest(directory, report)
    if newest is None:
        raise UsageError(f"{directory} has no whole checkpoint yet: train first, or wait for one")
    return Choice(newest, f"step {newest.step:,}, the newest")


def find(source: str) -> Choice:
    """Returns the checkpoint meant by a run directory, its `checkpoints`, or one checkpoint.

    Raises:
      UsageError: there is none, or it is not whole.
    """
    source = source.removeprefix("file://")
    if os.path.exists(os.path.join(source, commits.COMMIT_NAME)):
        try:
            commit = commits.verify(os.path.abspath(source))
        except commits.NotWhole as reason:
            raise UsageError(f"checkpoint {source} is not whole: {reason}") from None
        return Choice(commit, f"step {commit.step:,}, as asked for")
    if not os.path.isdir(source):
        raise UsageError(f"{source} is no run: name the --output of a training run")
    inside = os.path.join(source, "checkpoints")
    return choose(inside if os.path.isdir(inside) else source)
