"""What a run begins with: its newest whole checkpoint, another run's weights, or fresh ones.

The chief decides which checkpoint it is, so that all workers go on from the same step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trainer.build import Trainable
from trainer.errors import PeerLost
from trainer.loop.schedule import Schedule
from trainer.loop.variables import matching, paths_of, task_variables
from trainer.plan import Plan
from trainer.run import belonging, checkpoint, commits
from trainer.run.commits import Commit
from trainer.run.directory import RunDirectory
from trainer.run.warm import initial_values


def restore(
    plan: Plan,
    trained: Trainable,
    directory: RunDirectory,
    agree: Callable[[Sequence[int]], list[int]],
    say: Callable[[str], None],
) -> tuple[int, dict[str, Any]]:
    """Fills the variables; returns the step that they are of, and what COMMIT.json has beside them.

    Raises:
      UsageError: the checkpoint is of another run, or there is nothing to take weights from.
      PeerLost: the chief goes on from a checkpoint that this worker does not see.
    """
    commit = None
    output = plan.config.output
    if plan.spec.is_chief:
        commit = checkpoint.latest(directory.checkpoints, say)
        if commit is None and commits.steps_in(directory.checkpoints):
            say(f"no checkpoint of {output} is whole: it begins anew at step 0")
    # The chief decides: what another one sees on a shared disk may be older.
    (step,) = agree([commit.step if commit else 0])
    meta = _describe(plan, trained.strategy.num_replicas_in_sync)
    if step:
        commit = commit or _commit_at(directory.checkpoints, step)
        belonging.check(commit, meta[belonging.CONFIG])
        checkpoint.restore(commit, trained.variables)
        meta["compiled"] = commit.meta.get("compiled")
        say(f"resuming {output} from step {step}")
        if plan.spec.is_chief:
            _say_if_stretched(plan, directory, step, say)
    elif plan.config.init_from:
        _warm_start(plan.config.init_from, plan, trained, say)
    return step, meta


def _commit_at(checkpoints: str, step: int) -> Commit:
    """Returns the commit that the chief goes on from, as this worker sees it."""
    if step not in commits.steps_in(checkpoints):
        raise PeerLost(
            f"the chief goes on from step {step}, which this worker does not see in {checkpoints}: "
            "it was written while the workers started, or they share no disk; start all of them "
            "again"
        )
    return commits.commit_at(checkpoints, step)


def _warm_start(source: str, plan: Plan, trained: Trainable, say: Callable[[str], None]) -> None:
    task = trained.task
    skip = matching(task, plan.config.init_skip, "init_skip")
    paths = paths_of(task)
    taken = initial_values(source, task_variables(task), skip, spelt=lambda name: paths[name])
    if trained.ema is not None:
        trained.ema.start()
    say(taken)


def _describe(plan: Plan, replicas: int) -> dict[str, Any]:
    """Returns what stands in every COMMIT.json beside the data."""
    return {
        "task": plan.config.task,
        "config_fingerprint": plan.fingerprint,
        belonging.CONFIG: belonging.identity(plan.stored),
        "dataset_fingerprint": plan.dataset.manifest.fingerprint,
        "workers": plan.spec.world_size,
        "replicas": replicas,
        "strategy": plan.choice.name,
    }


def _say_if_stretched(
    plan: Plan, directory: RunDirectory, step: int, say: Callable[[str], None]
) -> None:
    """A cosine ends with the run: another number of steps moves the rate at once."""
    config = plan.config
    before, now = directory.read_config().get("steps"), config.steps
    if config.schedule != "cosine" or not before or not now or before == now:
        return
    was, becomes = (float(Schedule(config, steps)(step)) for steps in (before, now))
    say(
        f"castell: warning: the run was to end at step {before}, and now at {now}: the cosine "
        f"stretches to there, so the rate goes from {was:.3g} to {becomes:.3g} at step {step}"
    )
