"""The configuration of a run: `keys` says what there is and why, `read` where values come from."""

from trainer.config.keys import MOST_STEPS, RESUMABLE_KEYS, TrainConfig
from trainer.config.read import add_flags, explain, load, parse_options, stored

__all__ = [
    "MOST_STEPS",
    "RESUMABLE_KEYS",
    "TrainConfig",
    "add_flags",
    "explain",
    "load",
    "parse_options",
    "stored",
]
