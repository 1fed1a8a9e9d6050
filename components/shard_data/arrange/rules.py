"""What `--split-…` columns must be, and how the rule stands in the manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from components.shard_data.arrange import keys
from components.shard_data.arrange.placement import Placement
from components.shard_data.options import SPLIT_NAME, ShardOptions
from components.shard_data.phases.rank import Ranked
from components.shard_data.types.plan import Plan
from trainer.errors import UsageError

_MOMENTS = ("date", "timestamp", "int64")
# A row's split is one byte; the last one is that of a null.
_MOST_SPLITS = 255
_NO_SPLIT = 255


def check_column(plan: Plan | None, name: str, options: ShardOptions) -> None:
    """Raises UsageError if a column cannot decide the splits."""
    flag = "--split-by" if name in options.split_by else "--split-time"
    flag = "--split-column" if name == options.split_column else flag
    if plan is None:
        raise UsageError(f"{flag} {name}: the column has no value in any row")
    if plan.shape:
        raise UsageError(f"{flag} {name}: the column holds lists")
    if flag == "--split-time" and plan.kind not in _MOMENTS:
        raise UsageError(
            f"{flag} {name}: the column is {plan.kind}, not a date, a timestamp or whole numbers"
        )
    if flag == "--split-column":
        _check_names(plan, name)


def _check_names(plan: Plan, name: str) -> None:
    if plan.kind != "string" or plan.words is None or len(plan.words) > _MOST_SPLITS:
        raise UsageError(f"--split-column {name}: the column does not hold names of a few splits")
    for word in plan.words:
        if not SPLIT_NAME.fullmatch(word):
            raise UsageError(
                f"--split-column {name}: {word!r} is not a name of letters, digits, - and _"
            )
    if "train" not in plan.words:
        raise UsageError(
            f"--split-column {name}: there must be a split called train (it has "
            f"{', '.join(plan.words[:5])})"
        )


def check_rows(ranked: Sequence[Ranked], options: ShardOptions) -> None:
    """Raises UsageError if rows do not say where they belong."""
    flag, lost = f"--split-time {options.split_time}", sum(some.no_moment for some in ranked)
    if options.split_column is not None:
        flag = f"--split-column {options.split_column}"
        lost = sum(some.by_split.get(_NO_SPLIT, 0) for some in ranked)
    if lost:
        raise UsageError(
            f"{flag}: the column is missing in {lost:,} rows: mend them, or part by another column"
        )


def by_part(
    plans: Mapping[str, Plan], ranked: Sequence[Ranked], options: ShardOptions
) -> dict[str, int] | None:
    """Returns the rows of each split where the rows themselves say it."""
    names = list(options.split) if options.split_by else []
    if options.split_column is not None:
        names = list(plans[options.split_column].words or ())
    if not names:
        return None
    return {
        name: sum(some.by_split.get(code, 0) for some in ranked) for code, name in enumerate(names)
    }


def described(options: ShardOptions, place: Placement) -> dict[str, Any]:
    """Returns the rule for the manifest."""
    rule: dict[str, Any] = {"fractions": dict(options.split), "seed": options.seed}
    if options.split_by:
        names = options.split_by
        rule["method"] = "by blake2b of seed and value: equal values share a split"
        rule["column"] = names[0] if len(names) == 1 else list(names)
    elif place.moments is not None:
        rule["method"] = "by time: train before the others, equal moments together"
        rule["column"] = options.split_time
        rule["moments"] = keys.moments_of(place.moments).tolist()
    elif options.split_column is not None:
        rule = {"method": "as the column says", "column": options.split_column,
                "seed": options.seed}  # fmt: skip
    else:
        rule["method"] = "shuffled by splitmix64 of seed and row number, cut at the fractions"
    return rule
