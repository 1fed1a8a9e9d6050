"""Which checkpoint evaluation and export take, and that they say so."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.components.models import Model, castell
from tests.runs import flags, run_main
from trainer.run import marks
from trainer.run.marks import Mark


def argv(command: str, run: Path, model: Model, output: Path, *more: str) -> list[str]:
    return [command, "--run", str(run), "--data", str(model.data), "--output", str(output), *more]


@pytest.fixture
def marked(models: dict[str, Model], tmp_path: Path) -> Path:
    """A copy of the run, whose one checkpoint is marked as the best."""
    run = Path(shutil.copytree(models["binary"].run, tmp_path / "run"))
    marks.write(str(run / "checkpoints"), [Mark(100, "auc", 0.93)])
    return run


def test_the_best_is_taken_and_said_unless_another_is_asked_for(
    models: dict[str, Model], marked: Path, start: Any, tmp_path: Path
) -> None:
    model = models["binary"]
    workers = {
        "step 100, best auc 0.93": start(
            castell, argv("evaluate", marked, model, tmp_path / "1"), log=tmp_path / "1.log"
        ),
        "step 100, the newest": start(
            castell,
            argv("export", marked, model, tmp_path / "2", "--step", "newest"),
            log=tmp_path / "2.log",
        ),
    }
    for why, worker in workers.items():
        assert why in worker.expect(0)


def test_what_is_no_checkpoint_is_one_line(
    models: dict[str, Model], tmp_path: Path, start: Any
) -> None:
    model = models["binary"]
    for command in ("evaluate", "export"):
        wrong = argv(command, model.run, model, tmp_path / "o", "--step", "bset")
        log = start(castell, wrong, log=tmp_path / f"{command}.log").expect(2)
        assert "castell: error: step (bset): give a step, best or newest" in log
    best = argv("export", model.run, model, tmp_path / "o", "--step", "best")
    log = start(castell, best, log=tmp_path / "best.log").expect(2)
    assert "has no checkpoint that is marked as the best" in log
    assert not (tmp_path / "o").exists()


def load_both(run: str) -> None:
    """The averages are taken, or the weights themselves."""
    import numpy as np
    import tensorflow as tf

    from trainer.trained import load

    averaged, plain = (
        load(run, averaged=averaged).task.models()["model"].get_weights()
        for averaged in (True, False)
    )
    (path,) = Path(run, "checkpoints").glob("step-*")
    reader = tf.train.load_checkpoint(f"{path}/variables")
    names = sorted(n for n in reader.get_variable_to_shape_map() if n.startswith("ema/model/"))
    assert names
    for name in names:
        place = int(name.split("/")[2])
        np.testing.assert_array_equal(averaged[place], reader.get_tensor(name))
        plain_name = name.removeprefix("ema/")
        np.testing.assert_array_equal(plain[place], reader.get_tensor(plain_name))
    assert not all(np.array_equal(a, b) for a, b in zip(averaged, plain, strict=True))


def test_a_run_with_averages_is_loaded_with_them(
    models: dict[str, Model], tmp_path: Path, start: Any
) -> None:
    run = tmp_path / "run"
    changes = flags(models["binary"].dataset, run, steps=30, ema_decay=0.9)
    start(run_main, changes, log=tmp_path / "train.log").expect(0)
    start(load_both, str(run), log=tmp_path / "load.log").expect(0)
