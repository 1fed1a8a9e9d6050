"""To which run a checkpoint belongs: every key of the configuration that decides weights.

The saver puts them into COMMIT's meta under "config". Whoever restores compares, so that a
checkpoint that was copied into another run's directory is told by its keys, not by odd shapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.config import RESUMABLE_KEYS
from trainer.errors import UsageError
from trainer.run.commits import Commit
from trainer.run.differences import differences

CONFIG = "config"


def identity(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keys of config.json that decide the weights, its Task and data set included."""
    return {key: value for key, value in stored.items() if key not in RESUMABLE_KEYS}


def check(commit: Commit, here: Mapping[str, Any]) -> None:
    """Refuses a checkpoint of another Task or configuration.

    Args:
      commit: of a saver that put `identity` into its meta; one without is let pass.
      here: `identity` of the run that wants the weights.

    Raises:
      UsageError: lists the keys that differ, with the value there and the value here.
    """
    there = commit.meta.get(CONFIG)
    if there is None:
        return
    differing = differences(there, here)
    if differing:
        raise UsageError(
            f"checkpoint {commit.path} belongs to another run: "
            f"{', '.join(f'{difference} here' for difference in differing)}; delete it, or name "
            "the run that it is of"
        )
