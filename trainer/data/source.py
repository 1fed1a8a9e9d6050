"""From a configuration to the data that it names, with what the run makes of it."""

from __future__ import annotations

from trainer.config import TrainConfig
from trainer.data.dataset import Dataset
from trainer.data.weighting import weighted


def open_data(config: TrainConfig) -> Dataset:
    """Returns the data of a run: opened, its weights known.

    Raises:
      UsageError: there is no such data, or no such weights in it.
    """
    return weighted(Dataset.open(config.data), config.weight_column, config.class_weights)
