"""Tells Vertex AI's tuning service how good a trial is, in the file that the service reads.

A line an evaluation, as the cloudml-hypertune package writes it: all values are text but the
timestamp, and the metric's name is a key. The name must be the one in the tuning job's study.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Mapping

from trainer.actions.metric import figure
from trainer.actions.report import Report
from trainer.config import TrainConfig
from trainer.run.damage import DAMAGED

DEFAULT_PATH = "/tmp/hypertune/output.metrics"
# As many as the service's own package keeps.
_MOST_LINES = 100


class Hypertune:
    """Writes `best_metric` of each evaluation to `path`."""

    def __init__(self, config: TrainConfig, path: str, trial: str, tag: str) -> None:
        self._config = config
        self._path = path
        self._trial = trial
        self._tag = tag
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)

    def __call__(self, report: Report) -> None:
        """Takes an evaluation."""
        if report.split != self._config.eval_split:
            return
        content = {
            "timestamp": time.time(),
            "trial": self._trial,
            "global_step": str(report.step),
            self._tag: str(figure(self._config, report.metrics)),
        }
        self._lines.append(json.dumps(content, sort_keys=True) + "\n")
        # In place, as the package does: the service may hold the file open.
        with open(self._path, "w", encoding="utf-8") as file:
            file.writelines(self._lines)


def hypertune(
    config: TrainConfig, environment: Mapping[str, str], say: Callable[[str], None]
) -> Hypertune | None:
    """Returns the action if this process belongs to a trial of a tuning job, else None."""
    trial = environment.get("CLOUD_ML_TRIAL_ID") or _trial(environment.get("CLUSTER_SPEC", ""))
    path = environment.get("CLOUD_ML_HP_METRIC_FILE")
    if not (trial or path):
        return None
    if not config.eval_every:
        say("castell: warning: a tuning trial reports evaluations, of which there are none: set "
            "--eval-every")  # fmt: skip
        return None
    tag = environment.get("CLOUD_ML_HP_METRIC_TAG") or config.best_metric
    return Hypertune(config, path or DEFAULT_PATH, trial or "0", tag)


def _trial(cluster_spec: str) -> str | None:
    """Returns `task.trial` of Vertex's CLUSTER_SPEC; whether that is sound is `resolve`'s care."""
    try:
        trial = json.loads(cluster_spec)["task"]["trial"]
    except DAMAGED:
        return None
    return str(trial) if trial else None
