"""Steps a second on one device, two cores.

A small MLP and a small CNN at a global batch of 64, with loss and gradient norm logged every 100
steps. See `steps` for what each side does.
"""

from collections.abc import Iterator

from tests.benchmarks.harness import Result
from tests.benchmarks.steps.race import race

TARGETS = {
    "mlp": {"hand": 2.0, "orbit": 1.0, "fit_default": 5.0, "fit_best": 3.0},
    "cnn": {"hand": 1.05, "orbit": 1.0, "fit_default": 2.0, "fit_best": 1.5},
}


def bench() -> Iterator[Result]:
    for case, targets in TARGETS.items():
        yield from race("one_device", case, targets)
