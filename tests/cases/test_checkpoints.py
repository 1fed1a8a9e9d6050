"""Reported faults of checkpoints, as far as saving and restoring alone can show them."""

from __future__ import annotations

from pathlib import Path

from tests.trainer.run.saving import restore_under, run, save_steps
from tests.workers import processes, tf_configs


def test_every_worker_restores_the_same_files_and_the_chief_saves_alone(tmp_path: Path) -> None:
    """TF#45898, TF#38635: no worker but the chief writes, and none needs another to restore."""
    directory = tmp_path / "checkpoints"
    run(save_steps, str(directory), [30], 3, log=tmp_path / "log")
    with processes() as start:
        workers = [
            start(restore_under, str(directory), "multi_worker", env=env, log=tmp_path / str(rank))
            for rank, env in enumerate(tf_configs(2))
        ]
        for worker in reversed(workers):
            worker.expect(0)
