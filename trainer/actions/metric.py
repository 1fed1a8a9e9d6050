"""The figure that decides: which way is better, what it was so far."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping

from trainer.config import TrainConfig
from trainer.errors import UsageError, suggestion
from trainer.run.damage import DAMAGED
from trainer.run.marks import Mode

# In a metric's name, as a word or part of one: the smaller, the better.
_SMALL_IS_GOOD = re.compile(
    r"loss|error|entropy|perplexity|divergence|hinge|poisson|log_?cosh|brier|deviance"
    r"|false_(posi|nega)tives|(?<![a-z])(r?mse|mae|mape|msle|rmsle|wer|cer|fpr|fnr|kl)(?![a-z])"
)


def mode_of(config: TrainConfig) -> Mode:
    """Returns whether the smallest or the largest `best_metric` is the best."""
    if config.best_mode != "auto":
        return config.best_mode
    return "min" if _SMALL_IS_GOOD.search(config.best_metric.lower()) else "max"


def check_metric(config: TrainConfig, names: Collection[str]) -> None:
    """Refuses a `best_metric` that evaluations do not yield.

    Raises:
      UsageError: names those that there are.
    """
    if config.best_metric not in names:
        near = suggestion(config.best_metric, list(names))
        raise UsageError(
            f"best_metric ({config.best_metric}) is no figure of an evaluation{near}: there are "
            f"{', '.join(names)}"
        )


def figure(config: TrainConfig, metrics: Mapping[str, float]) -> float:
    """Returns the value of `best_metric`.

    Raises:
      UsageError: as `check_metric`.
    """
    check_metric(config, metrics.keys())
    return float(metrics[config.best_metric])


def history(path: str, config: TrainConfig, until: int) -> list[tuple[int, float]]:
    """Returns (step, `best_metric`) of the evaluations in metrics.jsonl up to step `until`.

    What was not finite stands there as null, and is NaN here; evaluations without that metric (the
    run asked for another one) are left out.
    """
    found: list[tuple[int, float]] = []
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.readlines()
    except FileNotFoundError:
        return []
    for line in lines:
        try:
            content = json.loads(line)
            if content["split"] == config.eval_split and content["step"] <= until:
                value = content[config.best_metric]
                found.append((content["step"], float("nan") if value is None else float(value)))
        except DAMAGED:
            continue  # of another metric, or cut off when the process was killed
    return found
