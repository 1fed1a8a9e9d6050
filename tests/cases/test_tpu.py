"""Reported faults of TPUs that meet data: refused before the start, with the reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from tests.trainer.check import tasks
from trainer.check.tpu import examine
from trainer.cluster.spec import ClusterSpec
from trainer.cluster.strategy import Choice
from trainer.config import TrainConfig
from trainer.data.dataset import Dataset
from trainer.errors import UsageError
from trainer.plan import make_plan
from trainer.run.faults import StopRequest
from trainer.worker import Worker


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (tasks.Worded, "feature 'word' of preprocess is a string, and strings cannot travel"),
        (tasks.Ragged, "feature 'parts' of preprocess is a RaggedTensor"),
        (tasks.Loose, r"feature 'parts' of preprocess has no static shape \(\(64, None\)\)"),
    ],
)
def test_a_tpu_gets_numbers_of_a_known_shape_or_training_does_not_start(
    dataset: Dataset, tmp_path: Path, task: Any, words: str
) -> None:
    """TF#50583: dynamic shapes (and strings) failed in the TPU's compiler, far from their cause."""
    config = TrainConfig(
        data=dataset.path, output=str(tmp_path / "run"), steps=2, global_batch=64,
        task=f"{task.__module__}:{task.__name__}",
    )  # fmt: skip
    plan = make_plan(config, ClusterSpec())
    # A run on a TPU up to the point where it would touch one.
    plan = replace(plan, choice=Choice("tpu", "asked for", 0, 0, "TPU"))
    worker = Worker(plan, tf.distribute.OneDeviceStrategy("/CPU:0"), StopRequest())
    with pytest.raises(UsageError, match=f"strategy \\(tpu\\): {words}"):
        worker.run(None)
    assert not (tmp_path / "run").exists()


def test_files_are_read_on_the_host_and_the_step_reads_none(dataset: Dataset) -> None:
    """TF#49177: the TPU looked for files that only the host has ("[local]' not implemented").

    Our input reads on the host, so that its local disk works: a note says where the data must be.
    A step that reads files itself is a problem, even one that XLA would compile on a CPU.
    """
    config = TrainConfig(
        data=dataset.path, output="run", steps=2, global_batch=64,
        task=f"{tasks.__name__}:Everything",
    )  # fmt: skip
    report = examine(config, ClusterSpec())
    (found,) = [problem for problem in report.problems if problem.about == "ReadFile"]
    assert "reads or writes files, which the TPU cannot see" in str(found)
    (note,) = [note for note in report.notes if note.about.startswith("data ")]
    assert "the input is read by the host that the TPU hangs on" in str(note)
