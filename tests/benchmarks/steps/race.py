"""Lets sides take turns, and turns what they took into results.

A turn is short (some tenths of a second) and every side has one a round, in changing order, so that
a busy machine slows all alike; the first rounds warm up. A side that has stood still finds its
caches full of the others' data and its threads asleep, which slows the fastest most: so each turn
begins with one that does not count. Sides use the same cores: with two workers, each has one of its
own.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.benchmarks.harness import Result, result
from tests.benchmarks.steps import orbit_environment
from tests.benchmarks.steps.case import CASES
from tests.benchmarks.steps.cluster import WORKERS
from tests.workers import tf_configs

ROOT = Path(__file__).parents[3]
WARM_UP = 4
ROUNDS = 31

# What each side is called where a result names it.
NAMES = {
    "hand": "hand-written tf.function of 50 steps",
    "orbit": "Orbit's Controller",
    "fit_default": "model.fit",
    "fit_best": "model.fit at its best setting",
}


class Side:
    """The chief of one side, as the race sees it."""

    def __init__(self, chief: "subprocess.Popen[str]", log: Path) -> None:
        self._chief = chief
        self._log = log

    def turn(self) -> float:
        """Returns the seconds of one turn, after one that does not count."""
        self._once()
        return self._once()

    def _once(self) -> float:
        assert self._chief.stdin is not None
        assert self._chief.stdout is not None
        self._chief.stdin.write("\n")
        self._chief.stdin.flush()
        answer = self._chief.stdout.readline()
        if not answer:
            raise RuntimeError(f"the side ended:\n{self._log.read_text()[-3000:]}")
        return float(answer)


def race(place: str, case: str, targets: Mapping[str, float]) -> Iterator[Result]:
    """Yields ours against each side of `targets`, on `place`."""
    with tempfile.TemporaryDirectory() as logs, ExitStack() as stack:
        sides = {
            name: stack.enter_context(_started(name, case, place, Path(logs)))
            for name in ("ours", *targets)
        }
        for side in sides.values():
            for _ in range(WARM_UP):
                side.turn()
        seconds: dict[str, list[float]] = {name: [] for name in sides}
        names = list(sides)
        for turn in range(ROUNDS):
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                seconds[name].append(sides[name].turn())
    speed = {
        name: round(CASES[case].turn / statistics.median(taken)) for name, taken in seconds.items()
    }
    for name, target in targets.items():
        yield result(
            f"steps_{place}_{case}",
            list(zip(seconds["ours"], seconds[name], strict=True)),
            against=NAMES[name],
            target=target,
            extra={"steps_per_second": speed["ours"], "against_steps_per_second": speed[name]},
        )


@contextmanager
def _started(name: str, case: str, place: str, logs: Path) -> Iterator[Side]:
    cores = sorted(os.sched_getaffinity(0))[:2]
    environments = tf_configs(WORKERS[place]) if WORKERS[place] > 1 else [{}]
    beside = orbit_environment.environment() if name == "orbit" else {}
    processes = []
    for rank, environment in enumerate(environments):
        mine = [cores[rank % len(cores)]] if len(environments) > 1 else cores
        with (logs / f"{name}-{rank}.log").open("w") as log:
            processes.append(
                subprocess.Popen(
                    [
                        sys.executable, "-m", "tests.benchmarks.steps.worker",
                        name, case, place, ",".join(map(str, mine)),
                    ],
                    cwd=ROOT,
                    env={**os.environ, **environment, **beside},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                )
            )  # fmt: skip
    try:
        yield Side(processes[0], logs / f"{name}-0.log")
    finally:
        for process in processes:
            process.kill()
            process.wait()
