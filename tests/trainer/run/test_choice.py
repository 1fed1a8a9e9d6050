"""Which checkpoint is taken, whose it must be, and what a warm start takes of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from tests.trainer.run.saving import run
from trainer.errors import UsageError
from trainer.run import belonging, marks
from trainer.run.choice import Which, choose, find
from trainer.run.commits import commit_at
from trainer.run.marks import Mark

HERE = {"task": "tabular", "seed": 0, "options": {"hidden": [16, 8]}, "steps": 100}


def save_with_averages(root: str) -> None:
    """Steps 10 and 20; weights are the step, their averages a tenth of it."""
    import tensorflow as tf

    from trainer.run import checkpoint

    for step in (10, 20):
        variables = {
            "model/0000/kernel": tf.Variable(tf.fill([4, 2], float(step))),
            "model/0001/bias": tf.Variable(tf.fill([2], float(step))),
            "model/0002/moving_mean": tf.Variable(tf.fill([2], float(step))),
            "optimizer/loss/0000/iterations": tf.Variable(step, dtype=tf.int64),
            "ema/model/0000/kernel": tf.Variable(tf.fill([4, 2], step / 10)),
            "ema/model/0001/bias": tf.Variable(tf.fill([2], step / 10)),
        }
        meta = {belonging.CONFIG: belonging.identity(HERE)}
        checkpoint.save(f"{root}/checkpoints", step, variables, meta, keep=3)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("choice")
    run(save_with_averages, str(root), log=root / "log")
    return root


@pytest.fixture
def marked(saved: Path, tmp_path: Path) -> Path:
    """A copy whose step 10 is the best."""
    root = Path(shutil.copytree(saved, tmp_path / "run"))
    marks.write(str(root / "checkpoints"), [Mark(10, "auc", 0.93)])
    return root


def test_without_a_mark_the_newest_is_taken(saved: Path) -> None:
    directory = str(saved / "checkpoints")
    assert choose(directory).why == "step 20, the newest"
    assert choose(directory, 10).why == "step 10, as asked for"
    with pytest.raises(UsageError, match=r"no checkpoint that is marked as the best: .*eval-every"):
        choose(directory, "best")
    with pytest.raises(UsageError, match="no whole checkpoint yet"):
        choose(str(saved / "nowhere"))


def test_the_best_is_taken_if_the_run_keeps_one(marked: Path) -> None:
    directory = str(marked / "checkpoints")
    for which in (None, "best"):
        assert choose(directory, which).why == "step 10, best auc 0.93"
    assert choose(directory, "newest").why == "step 20, the newest"
    shutil.rmtree(marked / "checkpoints" / "step-00000010")
    assert choose(directory).commit.step == 20


def test_a_run_its_checkpoints_or_one_of_them_can_be_named(marked: Path) -> None:
    checkpoints = marked / "checkpoints"
    for source, step in ((marked, 10), (checkpoints, 10), (checkpoints / "step-00000020", 20)):
        assert find(str(source)).commit.step == step
    next((checkpoints / "step-00000020").glob("variables.data*")).write_bytes(b"")
    with pytest.raises(UsageError, match=r"step-00000020 is not whole: .* bytes instead of"):
        find(str(checkpoints / "step-00000020"))


def test_a_step_on_the_command_line_is_a_number_best_or_newest() -> None:
    which: TypeAdapter[Any] = TypeAdapter(Which)
    assert [which.validate_python(text) for text in ("900", 900, "best", "newest", None)] == [
        900, 900, "best", "newest", None,
    ]  # fmt: skip
    for wrong in ("-1", "bset", "1.5"):
        with pytest.raises(ValidationError, match="give a step, best or newest"):
            which.validate_python(wrong)


def test_a_checkpoint_of_another_configuration_is_told_by_its_keys(saved: Path) -> None:
    commit = commit_at(str(saved / "checkpoints"), 20)
    belonging.check(commit, belonging.identity({**HERE, "steps": 500, "log_every": 3}))
    other = {**HERE, "task": "image", "seed": 1, "options": {"hidden": [16], "depth": 2}}
    with pytest.raises(UsageError) as caught:
        belonging.check(commit, belonging.identity(other))
    line = str(caught.value)
    assert (
        f"checkpoint {commit.path} belongs to another run: options.depth is not set there" in line
    )
    for part in (
        "and 2 here", 'task is "tabular" there and "image" here', "seed is 0 there and 1 here",
        "options.hidden is [16, 8] there and [16] here",
    ):  # fmt: skip
        assert part in line, line


def restore_of_another(root: str) -> None:
    """The configuration is compared before the variables."""
    import tensorflow as tf

    from trainer.run import checkpoint

    commit = commit_at(f"{root}/checkpoints", 20)
    variables = {"model/0000/kernel": tf.Variable(tf.zeros([3, 3]))}
    with pytest.raises(UsageError, match=r"belongs to another run: seed is 0 there and 5 here;"):
        checkpoint.restore(commit, variables, belonging.identity({**HERE, "seed": 5}))
    with pytest.raises(UsageError, match=r"kernel is float32\[4, 2\] there and float32\[3, 3\]"):
        checkpoint.restore(commit, variables, belonging.identity(HERE))


def test_the_keys_are_compared_before_the_variables(saved: Path, tmp_path: Path) -> None:
    run(restore_of_another, str(saved), log=tmp_path / "log")


def start_warm(root: str) -> None:
    import tensorflow as tf

    from trainer.run.warm import initial_values

    variables = {
        "model/0000/kernel": tf.Variable(tf.zeros([4, 2])),
        "model/0001/bias": tf.Variable(tf.zeros([2])),
        "model/0002/moving_mean": tf.Variable(tf.zeros([2])),
    }
    line = initial_values(root, variables)
    assert line == (
        f"initial weights: 3 of 3 from {root} (step 10, best auc 0.93, 2 of them averages)"
    )
    means = [float(tf.reduce_mean(v)) for v in variables.values()]
    assert means == [1, 1, 10]

    grown = {**variables, "model/0001/bias": tf.Variable(tf.zeros([3])), "head": tf.Variable(0.0)}
    grown["model/0000/kernel"].assign(tf.zeros([4, 2]))
    with pytest.raises(UsageError) as caught:
        initial_values(root, grown, spelt=lambda name: f"my {name}")
    for part in (
        f"--init-from {root} (step 10, best auc 0.93): my head is not there",
        "my model/0001/bias is float32[2] there and float32[3] here",
        "--init-skip",
    ):
        assert part in str(caught.value), caught.value
    assert float(tf.reduce_sum(grown["model/0000/kernel"])) == 0
    line = initial_values(root, grown, skip=["head", "model/0001/bias"])
    assert line.startswith("initial weights: 2 of 4 from")
    assert [float(tf.reduce_mean(v)) for v in grown.values()] == [1, 0, 10, 0]


def test_a_warm_start_takes_weights_by_name_averages_first(marked: Path, tmp_path: Path) -> None:
    run(start_warm, str(marked), log=tmp_path / "log")
