"""One process of a side: `python -m tests.benchmarks.steps.worker SIDE CASE PLACE CORES`.

A line on stdin begins a turn; stdout answers with its seconds. What libraries print goes to stderr.
"""

import importlib
import os
import sys

from tests.benchmarks.steps import cluster
from tests.benchmarks.steps.case import CASES
from tests.benchmarks.steps.turns import Turns

SIDES = {
    "ours": "ours:train",
    "hand": "hand:train",
    "orbit": "orbit_controller:train",
    "fit_default": "fit:train_default",
    "fit_best": "fit:train_best",
}


def main(side: str, case: str, place: str, cores: str) -> None:
    os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    module, function = SIDES[side].split(":")
    train = getattr(importlib.import_module(f"tests.benchmarks.steps.{module}"), function)
    train(CASES[case], place, Turns(cluster.rank() == 0, report))


if __name__ == "__main__":
    main(*sys.argv[1:])
