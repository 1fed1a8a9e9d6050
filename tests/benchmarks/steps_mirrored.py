"""Steps a second on MirroredStrategy over two logical CPUs.

A small MLP and a small CNN at a global batch of 64, with loss and gradient norm logged every 100
steps. See `steps` for what each side does.
"""

from collections.abc import Iterator

from tests.benchmarks.harness import Result
from tests.benchmarks.steps.race import race

TARGETS = {
    "mlp": {"hand": 1.0, "orbit": 1.0},
    "cnn": {"hand": 1.0, "orbit": 1.0},
}


def bench() -> Iterator[Result]:
    for case, targets in TARGETS.items():
        yield from race("mirrored", case, targets)
