"""From a run to a SavedModel that was compared with the evaluated model before it appears."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from components.export_model import parity
from components.export_model.formats import DESCRIPTION, EXTRA, write_saved_model
from components.export_model.options import ExportOptions
from components.export_model.signatures import EXAMPLES, TENSORS, Served, input_names
from components.output import replacing
from components.run_data import raw_columns, task_for
from trainer.data.blocks import NULL_INT
from trainer.data.dataset import Dataset
from trainer.data.example import Example
from trainer.data.manifest import Feature
from trainer.data.weighting import weighted
from trainer.errors import CastellError, UsageError
from trainer.loop.predict import predict
from trainer.task import Task
from trainer.trained import Trained, load

PARITY_ROWS = 1000
# The rows that training saw least of come first.
SPLITS = ("test", "eval", "train")
_NAMES = frozenset(
    {"saved_model.pb", "fingerprint.pb", "variables", "assets", EXTRA, "keras_metadata.pb"}
)


@dataclass(frozen=True)
class ExportResult:
    """What was written.

    checkpoint: which one `step` is, in words. parity: largest difference by "signature output",
    over `rows` rows.
    """

    output: str
    formats: tuple[str, ...]
    step: int
    checkpoint: str
    fingerprint: str
    rows: int
    parity: dict[str, float]


def _silent(line: str) -> None:
    """Reports nothing."""


def export(options: ExportOptions, report: Callable[[str], None] = _silent) -> ExportResult:
    """Writes the model of a run, whole or not at all.

    Args:
      options: what to export and where to.
      report: called with a line a stage.

    Raises:
      UsageError: no run, no checkpoint, or a data set that does not fit the run.
      CastellError: the reloaded file does not say what the evaluated model says.
    """
    with replacing(
        options.output, marker=f"{EXTRA}/{DESCRIPTION}", names=_NAMES, kind="export"
    ) as directory:
        trained = load(options.run, step=options.step, data=options.data)
        if trained.dataset.is_nothing:
            raise UsageError(
                f"{options.run} was trained without data: there are no rows to compare an export "
                "with; load it with trainer.trained.load, and save its models"
            )
        foreign = trained.config.schema_file is not None  # there is nothing else to open
        data = trained.dataset if foreign else Dataset.open(trained.dataset.path)
        sample = take_sample(weighted(data, trained.config.weight_column))
        features = trained.task.inputs(trained.dataset.manifest)
        task = task_for(trained, sample.dataset)
        report(f"export {options.run}: {trained.why}, {len(features)} columns")
        write_saved_model(Served(trained.task, features), directory)
        report(f"export {options.run}: asking the file in a clean process")
        differences = _check(task, sample, features, directory)
        result = ExportResult(
            options.output, options.formats, trained.step, trained.why, trained.fingerprint,
            sample.rows, differences,
        )  # fmt: skip
        _describe(directory, trained, features, result)
    return result


@dataclass(frozen=True)
class Sample:
    """The first rows of one split: a data set whose manifest ends after them."""

    dataset: Dataset
    split: str

    @property
    def rows(self) -> int:
        """How many."""
        return self.dataset.split(self.split).rows


def take_sample(dataset: Dataset) -> Sample:
    """Returns up to PARITY_ROWS rows that training did not see, if there are any."""
    splits = dataset.manifest.splits
    names = [*SPLITS, *sorted(splits)]
    name = next((n for n in names if n in splits and splits[n].rows), None)
    if name is None:
        raise UsageError(f"{dataset.path} has no rows to compare the exported model on")
    split = splits[name]
    shards, rows = [], 0
    for shard in split.shards:
        taken = min(shard.rows, PARITY_ROWS - rows)
        if taken:
            shards.append(shard.model_copy(update={"rows": taken}))
            rows += taken
    short = split.model_copy(update={"rows": rows, "shards": tuple(shards)})
    manifest = dataset.manifest.model_copy(update={"splits": {name: short}})
    return Sample(dataclasses.replace(dataset, manifest=manifest), name)


def _check(
    task: Task, sample: Sample, features: tuple[Feature, ...], saved_model: Path
) -> dict[str, float]:
    """Compares both signatures with the path that evaluation takes, dictionary codes and all."""
    expected = predict(task, tf.distribute.get_strategy(), sample.dataset, sample.split)
    _, columns = raw_columns(sample.dataset, sample.split, [f.name for f in features])
    names = input_names(features)
    requests = {
        TENSORS: {names[column]: values for column, values in columns.items()},
        EXAMPLES: {"examples": _examples(features, columns, sample.rows)},
    }
    try:
        answers = parity.ask(saved_model, requests)
    except parity.ParityError as error:
        raise RuntimeError(f"the exported model does not answer:\n{error}") from None
    found = {
        f"{signature} {output}": difference
        for signature, outputs in answers.items()
        for output, difference in parity.compare(expected.outputs, outputs).items()
    }
    worst = max(found, key=lambda name: found[name])
    if not found[worst] <= parity.TOLERANCE:
        raise CastellError(
            f"the exported model differs from the evaluated one: {worst} by up to "
            f"{found[worst]:.3g} on {sample.rows} rows of {sample.split}, allowed is "
            f"{parity.TOLERANCE:g}; nothing was written (does preprocess or serve depend on state?)"
        )
    return found


def _examples(features: tuple[Feature, ...], columns: dict[str, Any], rows: int) -> Any:
    """Serializes each row as a tf.train.Example; a null is an absent feature."""
    serialized = np.empty(rows, object)
    for row in range(rows):
        example = Example()
        for feature in features:
            value = np.atleast_1d(columns[feature.name][row]).ravel()
            if not _is_null(feature, value):
                kind = {"float32": "float_list", "int64": "int64_list", "string": "bytes_list"}
                put = getattr(example.features.feature[feature.name], kind[feature.dtype])
                put.value.extend(value.tolist())
        serialized[row] = example.SerializeToString()
    return serialized


def _is_null(feature: Feature, value: Any) -> bool:
    if feature.dtype == "string":
        return all(word == b"" for word in value)
    return bool(np.all(np.isnan(value) if feature.dtype == "float32" else value == NULL_INT))


def _describe(
    directory: Path, trained: Trained, features: tuple[Feature, ...], result: ExportResult
) -> None:
    """Writes what a caller must know about requests and answers beside the model."""
    label, names = trained.dataset.manifest.label, input_names(features)
    description = {
        "format_version": 1,
        "step": result.step,
        "checkpoint": result.fingerprint,
        "dataset": trained.dataset.manifest.fingerprint,
        "task": trained.config.task,
        "label": label.model_dump(mode="json"),
        "inputs": [
            {
                "column": f.name,
                TENSORS: names[f.name],
                "dtype": f.dtype,
                "shape": [None, *f.shape],
                "nullable": f.nullable,
                "logical": f.logical,
            }
            for f in features
        ],
        "null": {"float32": "NaN", "int64": NULL_INT, "string": "", "example": "absent"},
        "parity": {
            "rows": result.rows,
            "tolerance": parity.TOLERANCE,
            "largest_difference": result.parity,
        },
    }
    path = directory / EXTRA / DESCRIPTION
    path.write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")
