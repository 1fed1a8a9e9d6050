"""From a configuration to the data that it names, with what the run makes of it."""

from __future__ import annotations

import os
from dataclasses import replace

from trainer import files
from trainer.config import TrainConfig
from trainer.data.dataset import Dataset
from trainer.data.staging import Cache
from trainer.data.weighting import weighted
from trainer.errors import UsageError

_GIGABYTE = 10**9


def open_data(config: TrainConfig) -> Dataset:
    """Returns the data of a run: opened, its weights known, its remote shards cached if asked for.

    Raises:
      UsageError: there is no such data, or no such weights in it.
    """
    dataset = replace(Dataset.open(config.data), cache=cache_of(config))
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
