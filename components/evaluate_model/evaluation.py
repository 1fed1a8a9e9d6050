"""`evaluation.json`: the figures of one run on one split, whole, by slices, and the verdict.

Every figure is a finite number or null; `reasons` says why one is null. Other modules compute;
this one only says what a reader of the file may rely on.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from trainer.data.manifest import LabelKind

Metrics = dict[str, float | None]
SliceValue = str | int | bool


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class SliceFigures(_Frozen):
    """One part of the split. `slice`: column to value, bin ("[2, 7)"), "(missing)", "(other)"."""

    slice: dict[str, SliceValue]
    rows: int
    metrics: Metrics
    reasons: dict[str, str] = {}


class RuleResult(_Frozen):
    """One threshold: the figure it looked at and whether it held. A null figure fails."""

    rule: str
    value: float | None
    bound: float | None
    passed: bool
    rows: int
    reason: str | None = None


class Verdict(_Frozen):
    """`passed`: every rule holds (also when there is none)."""

    passed: bool
    rules: tuple[RuleResult, ...] = ()


class Roc(_Frozen):
    """At most 200 points from (0, 0) to (1, 1); `thresholds` falling and finite."""

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]
    thresholds: tuple[float, ...]


class PrecisionRecall(_Frozen):
    """At most 200 points, recall rising."""

    recall: tuple[float, ...]
    precision: tuple[float, ...]


class Confusion(_Frozen):
    """`matrix[i][j]`: weight of the rows of class i that were taken for class j.

    Binary: at threshold 0.5. Beyond 50 classes the rarest are one class "(other)".
    """

    classes: tuple[str, ...]
    matrix: tuple[tuple[float, ...], ...]


class ClassFigures(_Frozen):
    """One class against the rest; null where it was never predicted or never there."""

    name: str
    rows: int
    precision: float | None
    recall: float | None
    f1: float | None


class CalibrationBin(_Frozen):
    """Rows whose score is in [low, high): their mean score and how often it came true."""

    low: float
    high: float
    rows: int
    score: float
    rate: float


class Baseline(_Frozen):
    """Another run on the same rows; `differences`: this run's figure minus the baseline's."""

    run: str
    step: int
    fingerprint: str
    metrics: Metrics
    differences: Metrics


class Fingerprints(_Frozen):
    """What was evaluated: content of the dataset, bytes of the checkpoint."""

    dataset: str
    checkpoint: str


class Evaluation(_Frozen):
    """The file. Multiclass: precision, recall and f1 are macro averages."""

    run: str
    step: int
    data: str
    split: str
    rows: int
    label: str
    kind: LabelKind
    classes: tuple[str, ...] | None
    created: str
    replicas: int
    metrics: Metrics
    reasons: dict[str, str]
    slices: tuple[SliceFigures, ...]
    verdict: Verdict
    confusion: Confusion | None = None
    per_class: tuple[ClassFigures, ...] = ()
    roc: Roc | None = None
    precision_recall: PrecisionRecall | None = None
    calibration: tuple[CalibrationBin, ...] = ()
    # Quantile ("0.05", …) to the residual: prediction minus label.
    residual_quantiles: dict[str, float] = {}
    # Which checkpoint `step` is: "step 900, best auc 0.93".
    checkpoint: str = ""
    baseline: Baseline | None = None
    fingerprints: Fingerprints
    format_version: Literal[1] = 1
