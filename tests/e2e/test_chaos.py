"""Workers are killed, stopped, starved and terminated at random; the run ends as if undisturbed.

CHAOS_SEED chooses another course of events.
"""

from __future__ import annotations

import os
import random
import re
import signal
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.datasets import make_dataset
from tests.recording import FILE, MARK, PACE
from tests.runs import flags, run_main, start, weights
from tests.workers import Worker, tf_configs
from trainer.data.dataset import Dataset
from trainer.data.feed import super_batches
from trainer.data.lanes import plan
from trainer.data.peek import peek
from trainer.data.rows import raw_features

__all__ = ["start"]

SEED = int(os.environ.get("CHAOS_SEED", "3"))
STEPS = 400
LANES = 12  # 1, 2, 3 and 4 workers divide them
BATCH = 24
HEARTBEAT_SECONDS = 3
# What a lost worker may cost the others, with room for a busy machine.
PATIENCE = HEARTBEAT_SECONDS + 15
DEEDS = ("kill", "kill", "kill", "stop", "stop", "starve", "starve", "term", "term", "kill")


class Round:
    """One start of the cluster: its workers, and what they have recorded."""

    def __init__(
        self, starter: Any, argv: list[str], directory: Path, workers: int, pace: float
    ) -> None:
        directory.mkdir()
        self.files = [directory / f"{rank}.rows" for rank in range(workers)]
        self.workers: list[Worker] = [
            starter(
                run_main, argv, log=directory / f"{rank}.log",
                env={**env, FILE: str(self.files[rank]), PACE: str(pace)},
            )
            for rank, env in enumerate(tf_configs(workers))
        ]  # fmt: skip

    @property
    def steps(self) -> int:
        """Steps that every worker has begun since this start."""
        size = BATCH // len(self.files) * np.float32().itemsize
        return min(f.stat().st_size // size if f.exists() else 0 for f in self.files)

    def progress(self, steps: int) -> None:
        self.workers[0].wait_for(lambda: self.steps >= steps)

    def do(self, deed: str, victim: int) -> None:
        """Does it to one worker, and checks how all of them end."""
        worker, others = self.workers[victim], self.workers[:]
        others.remove(worker)
        if deed == "starve":
            os.setpriority(os.PRIO_PROCESS, worker.pid, 19)
            for _ in range(3):
                worker.send(signal.SIGSTOP)
                time.sleep(HEARTBEAT_SECONDS / 4)
                worker.send(signal.SIGCONT)
                time.sleep(HEARTBEAT_SECONDS / 8)
            self.progress(self.steps + 3)  # it goes on
        if deed in ("starve", "term"):
            worker.send(signal.SIGTERM)
            for each in self.workers:
                each.expect(143)
            return
        worker.send(signal.SIGSTOP if deed == "stop" else signal.SIGKILL)
        for other in others:
            assert f"lost {'rank ' if victim else 'chief'}" in other.expect(138, PATIENCE)
        worker.send(signal.SIGKILL) if deed == "stop" else None
        worker.expect(-signal.SIGKILL)

    def began(self) -> int:
        """The step that this start resumed from."""
        found = re.search(r"resuming .* from step (\d+)", self.workers[0].output)
        return int(found[1]) if found else 0

    def recorded(self) -> list[Any]:
        """The marks that each worker has seen, [steps, rows]."""
        size = BATCH // len(self.files)
        return [np.fromfile(file, np.float32).reshape(-1, size) for file in self.files]


def expected_marks(dataset: Dataset) -> Any:
    """The marks of each step, [steps, lanes, rows]; `peek` names the same rows."""
    shards = [shard.rows for shard in dataset.split("train").shards]
    lanes = plan(shards, global_batch=BATCH, replicas=1, seed=0, window_rows=8192, lanes=LANES)
    block = next(super_batches(dataset, "train", lanes, range(LANES), step=0, steps=STEPS))
    ids = block.row_id.reshape(STEPS, LANES, -1)
    asked = Namespace(
        data=dataset.path, split="train", global_batch=BATCH, replicas=3, step=STEPS - 20,
        steps=20, seed=0, lanes=LANES, window_rows=8192,
    )  # fmt: skip
    for step, rows in peek(asked):
        assert rows == ids[step].tolist()
    return raw_features(dataset, block, [MARK])[MARK].reshape(ids.shape)


def check_rows(rounds: Sequence[Round], expected: Any) -> None:
    """Every step that anybody ever took has seen its rows; together they took all."""
    taken: set[int] = set()
    for one in rounds:
        began, replicas = one.began(), len(one.files)
        for replica, marks in enumerate(one.recorded()):
            theirs = expected[began : began + len(marks), replica::replicas]
            np.testing.assert_array_equal(marks, theirs.reshape(len(marks), -1))
        taken.update(range(began, began + one.steps))
    assert taken == set(range(STEPS))


@pytest.mark.timeout(900)
def test_ten_disasters_leave_no_trace_in_rows_and_weights(tmp_path: Path, start: Any) -> None:
    chance = random.Random(SEED)
    dataset = make_dataset(tmp_path / "data", rows=2400, shards=LANES)
    argv = flags(
        dataset, tmp_path / "run", steps=STEPS, task="tests.recording:Recording", hidden="8",
        global_batch=BATCH, lanes=LANES, steps_per_call=5, checkpoint_every=10, log_every=100,
        heartbeat_timeout_seconds=HEARTBEAT_SECONDS, jit="off",
    )  # fmt: skip
    calm = [word.replace(str(tmp_path / "run"), str(tmp_path / "calm")) for word in argv]
    undisturbed = Round(start, calm, tmp_path / "undisturbed", 1, pace=0)
    deeds = chance.sample(DEEDS, len(DEEDS))
    rounds: list[Round] = []
    for number, deed in enumerate(deeds):
        size = 3 if number == 0 else chance.randint(1, 4)
        victim, steps = chance.randrange(size), chance.randint(3, 25)
        print(f"seed {SEED}, round {number}: {deed} rank {victim} of {size} after {steps} steps")
        began = time.monotonic()
        rounds.append(Round(start, argv, tmp_path / f"{number}", size, pace=0.02))
        rounds[-1].progress(steps)
        rounds[-1].do(deed, victim)
        print(f"  {time.monotonic() - began:.1f} s, from step {rounds[-1].began()}", flush=True)
    rounds.append(Round(start, argv, tmp_path / "last", chance.randint(1, 4), pace=0))
    for worker in (*rounds[-1].workers, *undisturbed.workers):
        worker.expect(0)
    assert rounds[-1].steps < STEPS, "the disasters kept something"
    expected = expected_marks(dataset)
    check_rows([undisturbed], expected)
    check_rows(rounds, expected)
    difference = weights(start, tmp_path / "run") - weights(start, tmp_path / "calm")
    assert np.abs(difference).max() <= 1e-4
