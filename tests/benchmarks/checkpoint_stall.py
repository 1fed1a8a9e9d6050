"""What a checkpoint costs training: ours, written in a thread, against tf.train.Checkpoint.

A kernel and its two Adam slots, 201 MB, trained by one core, as a device would be fed; the other
cores are free. Two figures: the time for which the save blocks; and that with how much longer than
usual the next step takes, which copies each variable that it updates while it is being written.
What the steps after that suffer from sharing memory and disk with the writing thread is told beside
(`beside`: their length against the usual one's), since on a busy machine it is lost in the noise.
"""

import multiprocessing
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from tests.benchmarks.harness import Result, in_turns, result, wall_seconds

UNITS = 4096
BATCH = 4
# Before a save and after its writing.
QUIET_STEPS = 5
RUNS = 7
TARGET = 0.1


def bench() -> Iterator[Result]:
    # TensorFlow takes the number of its threads once a process.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pairs, extra = pool.apply(_measured)
    for place, name in enumerate(
        ("checkpoint_stall_share", "checkpoint_and_next_step_stall_share")
    ):
        yield result(
            name,
            [(ours[place], theirs[place]) for ours, theirs in pairs],
            against="tf.train.CheckpointManager.save",
            target=TARGET,
            upper_bound=True,
            extra=extra,
        )


def _measured() -> tuple[Any, dict[str, object]]:
    import tensorflow as tf

    from trainer.run.saver import Saver

    tf.config.threading.set_intra_op_parallelism_threads(1)
    step, variables = _training()
    with tempfile.TemporaryDirectory() as directory:
        manager = tf.train.CheckpointManager(
            tf.train.Checkpoint(variables=list(variables.values())), f"{directory}/theirs", 3
        )
        saver = Saver(
            f"{directory}/ours", variables, {},
            keep=3, keep_best=0, background=True, say=print,
        )  # fmt: skip
        numbers = iter(range(1, 100))

        def ours() -> None:
            saver.save(next(numbers))

        beside: list[float] = []
        cost = partial(_cost, step, saver, beside)
        cost(ours)  # memory that no process has touched before costs once a machine, not a save
        cost(manager.save)
        beside.clear()
        pairs = in_turns(ours, manager.save, cost, RUNS)
        saver.finish()
    megabytes = sum(v.shape.num_elements() * 4 for v in variables.values()) / 1e6
    return pairs, {
        "beside": round(statistics.median(beside), 3),
        "megabytes": round(megabytes),
        "ours_seconds": _medians(ours for ours, _ in pairs),
        "theirs_seconds": _medians(theirs for _, theirs in pairs),
    }


def _medians(costs: Iterable[tuple[float, float]]) -> list[float]:
    return [round(statistics.median(each), 4) for each in zip(*costs, strict=True)]


def _training() -> tuple[Callable[[], object], dict[str, Any]]:
    """Returns a step that waits for its result, and the variables that it changes."""
    import tensorflow as tf

    kernel, first, second = (tf.Variable(tf.zeros([UNITS, UNITS])) for _ in range(3))
    kernel.assign(tf.random.stateless_normal([UNITS, UNITS], [0, 0], stddev=0.01))
    rows = tf.random.stateless_normal([BATCH, UNITS], [0, 1])

    @tf.function
    def train() -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(rows, kernel) - 1.0))
        gradient = tape.gradient(loss, kernel)
        tf.raw_ops.ResourceApplyAdam(
            var=kernel.handle, m=first.handle, v=second.handle, beta1_power=0.9,
            beta2_power=0.999, lr=1e-4, beta1=0.9, beta2=0.999, epsilon=1e-7, grad=gradient,
        )  # fmt: skip
        return loss

    return lambda: float(train()), {"kernel": kernel, "first": first, "second": second}


def _cost(
    step: Callable[[], object], saver: Any, beside: list[float], save: Callable[[], object]
) -> tuple[float, float]:
    """Returns the seconds for which `save` blocks, and those with what it adds to the next step.

    `beside` grows if something is still being written then.
    """
    quiet = [wall_seconds(step) for _ in range(QUIET_STEPS)]
    blocked = wall_seconds(save)
    copying = wall_seconds(step)
    writing: list[float] = []
    while saver.busy:
        writing.append(wall_seconds(step))
    usual = statistics.median(quiet + [wall_seconds(step) for _ in range(QUIET_STEPS)])
    if writing:
        beside.append(statistics.median(writing) / usual)
    return blocked, blocked + max(copying - usual, 0.0)
