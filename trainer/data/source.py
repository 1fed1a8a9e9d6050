"""From a configuration to the data that it names, with what the run makes of it."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import Any

from trainer import files
from trainer.config import TrainConfig
from trainer.data import foreign, schema
from trainer.data.dataset import Dataset
from trainer.data.staging import Cache
from trainer.data.weighting import weighted
from trainer.errors import UsageError
from trainer.run.directory import RunDirectory

_GIGABYTE = 10**9


def open_data(config: TrainConfig) -> Dataset:
    """Returns the data of a run: opened, its weights known, its remote shards cached if asked for.

    Raises:
      UsageError: there is no such data, or no such weights in it.
    """
    dataset = Dataset.open(config.data) if config.schema_file is None else _records(config)
    if config.schema_file is None and config.label is not None:
        raise UsageError(
            f"label ({config.label}) names the label of foreign TFRecords, which need schema_file "
            f"too; {config.data} has the label {dataset.manifest.label.name!r}"
        )
    dataset = replace(dataset, cache=cache_of(config))
    return weighted(dataset, config.weight_column, config.class_weights)


def cache_of(config: TrainConfig) -> Cache | None:
    """Returns where this machine keeps copies of remote shards, if it does.

    Raises:
      UsageError: that is no place of this machine.
    """
    if config.cache is None:
        return None
    if files.is_remote(config.cache):
        raise UsageError(f"cache ({config.cache}): it must be a directory of this machine")
    return Cache(os.path.abspath(config.cache), int(config.cache_gigabytes * _GIGABYTE))


def open_for_run(run: str, data: str) -> Dataset:
    """Returns data for a run to be evaluated on, described as the data it was trained on.

    Raises:
      UsageError: there is no such run or data.
    """
    directory = RunDirectory(run)
    if directory.read_config().get("schema_file") is None:
        return Dataset.open(data)
    kept = Dataset.open(directory.dataset)
    columns = [f.model_copy(update={"storage": None}) for f in kept.manifest.features]
    return foreign.open_records(data, columns, kept.manifest.label, kept=kept, say=_say)


def place_of(config: TrainConfig, data: str | None = None) -> str:
    """Returns where the shards' paths begin. data: where the rows are now, if not as configured."""
    data = data or config.data
    return data if config.schema_file is None else foreign.base_of(data)


def _records(config: TrainConfig) -> Dataset:
    if config.label is None or config.schema_file is None:
        raise UsageError("label is required: which feature of the TFRecords it is, --label NAME")
    name = f"schema_file {config.schema_file}"
    try:
        text = files.read_text(config.schema_file)
    except FileNotFoundError:
        raise UsageError(f"{name}: no such file") from None
    except UnicodeDecodeError:
        raise UsageError(f"{name} is no text (not UTF-8)") from None
    except files.read_errors(ValueError, ImportError) as error:
        raise UsageError(f"{name} cannot be read: {files.reason(error)}") from None
    kept: Any = None
    directory = RunDirectory(config.output).dataset
    if os.path.exists(os.path.join(directory, "manifest.json")):
        kept = Dataset.open(directory)
    return foreign.open_records(
        config.data, schema.parse(text, name), config.label, kept=kept, say=_say
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
