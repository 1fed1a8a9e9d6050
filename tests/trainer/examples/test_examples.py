"""The worked examples on real data: each learns, and two workers learn what one learns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from tests.trainer.examples.runs import Start, ask, difference, finish, train, weights
from tests.trainer.tasks.made import make
from trainer.data.dataset import Dataset

TOLERANCE = 1e-5


@pytest.mark.timeout(240)
def test_a_student_learns_from_a_teacher_and_is_served_without(
    start: Start, tmp_path: Path
) -> None:
    found = load_breast_cancer()
    names = [f"x{number}" for number in range(found.data.shape[1])]
    columns = dict(zip(names, found.data.T, strict=True))
    data = make(tmp_path / "data", {**columns, "y": found.target})
    keys: dict[str, Any] = {"data": data.path, "steps": 60, "global_batch": 64}
    finish(train(start, tmp_path / "teacher", **keys, hidden="64,64", learning_rate=0.01))
    keys |= {
        "task": "trainer.examples.distillation:Distillation", "hidden": "4", "soft": 0.9,
        "learning_rate": 0.02, "teacher": tmp_path / "teacher",
    }  # fmt: skip
    runs = [
        train(start, tmp_path / f"student-{workers}", workers=workers, **keys) for workers in (1, 2)
    ]
    wrong = {**keys, "teacher": tmp_path / "nobody"}
    (refused,) = train(start, tmp_path / "untaught", **wrong)
    assert "castell: error: " in refused.expect(2)
    assert "Traceback" not in refused.output
    finish(*runs)
    one, two = (
        ask(start, weights, tmp_path / f"student-{n}", 60, log=tmp_path / f"weights-{n}.log")
        for n in (1, 2)
    )
    assert difference(one, two) < TOLERANCE
    teacher = ask(start, said, tmp_path / "teacher", log=tmp_path / "teacher.log")
    (tmp_path / "teacher").rename(tmp_path / "gone")
    student = ask(start, said, tmp_path / "student-1", log=tmp_path / "student.log")
    label = student["label"]
    assert np.mean((student["said"] > 0.5) == label) > 0.9
    assert np.corrcoef(student["said"], teacher["said"])[0, 1] > 0.95
    assert sum(v.size for v in one.values()) < 200, "the teacher's weights are not the student's"


def said(run: str, path: str) -> None:
    import tensorflow as tf

    from trainer.loop.predict import predict
    from trainer.trained import load

    trained = load(run)
    found = predict(trained.task, tf.distribute.get_strategy(), trained.dataset, "test")
    np.savez(path, said=found.outputs["probability"], label=found.label)


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    found = load_digits()
    return make(tmp_path_factory.mktemp("digits"), {"image": found.data, "y": found.target})


@pytest.mark.timeout(240)
def test_a_gan_draws_images_with_the_moments_of_the_real_ones(
    digits: Dataset, start: Start, tmp_path: Path
) -> None:
    keys: dict[str, Any] = {
        "data": digits.path, "task": "trainer.examples.gan:Gan", "global_batch": 64,
        "hidden": "64", "rate": 1e-3,
    }  # fmt: skip
    long = train(
        start, tmp_path / "one", steps=600, checkpoint_every=20, keep_checkpoints=99, **keys
    )
    short = train(start, tmp_path / "two", workers=2, steps=20, **keys)
    finish(long, short)
    one = ask(start, weights, tmp_path / "one", 20, log=tmp_path / "one-20.log")
    two = ask(start, weights, tmp_path / "two", 20, log=tmp_path / "two-20.log")
    assert difference(one, two) < TOLERANCE
    real = load_digits().data / 8 - 1
    first, last = (
        ask(start, drawn, tmp_path / "one", step, log=tmp_path / f"drawn-{step}.log")["images"]
        for step in (20, 600)
    )

    def apart(images: Any) -> float:
        mean = np.abs(images.mean(0) - real.mean(0)).mean()
        return float(mean + np.abs(images.std(0) - real.std(0)).mean())

    print("moments apart", apart(first), apart(last))
    assert apart(last) < 0.5 * apart(first)


def drawn(run: str, step: str, path: str) -> None:
    import tensorflow as tf

    from trainer.trained import load

    task: Any = load(run, step=int(step)).task
    images = task.draw(tf.random.stateless_normal([1000, 16], [0, 0]))
    np.savez(path, images=np.reshape(images, [1000, -1]))


@pytest.mark.timeout(240)
def test_a_policy_learns_to_balance_a_pole(start: Start, tmp_path: Path) -> None:
    keys: dict[str, Any] = {
        "task": "trainer.examples.policy_gradient:CartPole", "global_batch": 32, "ticks": 100,
        "schedule": "constant", "learning_rate": 0.01, "optimizer": "adam",
    }  # fmt: skip
    long = train(
        start, tmp_path / "one", steps=100, checkpoint_every=10, keep_checkpoints=99, **keys
    )
    short = train(start, tmp_path / "two", workers=2, steps=10, **keys)
    finish(long, short)
    one = ask(start, weights, tmp_path / "one", 10, log=tmp_path / "one-10.log")
    two = ask(start, weights, tmp_path / "two", 10, log=tmp_path / "two-10.log")
    assert difference(one, two) < TOLERANCE
    first, last = (
        float(
            ask(start, played, tmp_path / "one", step, log=tmp_path / f"played-{step}.log")["ticks"]
        )
        for step in (10, 100)
    )
    print("ticks", first, last)
    assert first < 50
    assert last > 1.5 * first


def played(run: str, step: str, path: str) -> None:
    import tensorflow as tf

    from trainer.trained import load

    task: Any = load(run, step=int(step)).task
    game = tf.function(task.play)(tf.constant(1_000_000), tf.range(100))
    np.savez(path, ticks=np.sum(game.alive) / 100)
