"""From `docker run` to the first step: the trainer image against a bare script in the same image.

Both train a small model. The script does what nobody can do without: import TensorFlow, build a
model, trace a step. What ours costs beside is the question: configuration, data set, strategy, run
directory, a look at what the Task serves. Needs a Docker engine with the image on it
(`make image TARGET=trainer`).
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from tests.benchmarks.harness import RUNS, Result, result
from tests.datasets import make_dataset

IMAGE = "castell-trainer:0.1.0"
TARGET = 1.3
ROWS, BATCH = 4000, 64
_SECONDS = 300

BARE = f"""
import tensorflow as tf
import keras
model = keras.Sequential([keras.Input([8]), keras.layers.Dense(256, "relu"), keras.layers.Dense(1)])
optimizer = keras.optimizers.Adam(1e-3)
optimizer.build(model.trainable_variables)
metric = keras.metrics.Mean()
rows = tf.data.Dataset.from_tensors(
    (tf.random.normal([{BATCH}, 8]), tf.ones([{BATCH}]))).repeat().prefetch(1)

@tf.function
def step(iterator):
    x, y = next(iterator)
    with tf.GradientTape() as tape:
        logits = model(x, training=True)[:, 0]
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(y, logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    metric.update_state(loss)

step(iter(rows))
print("first step", float(metric.result()), flush=True)
"""


def bench() -> Result:
    """Returns ours / the script's, seconds to the first step."""
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory, "data")
        make_dataset(data, rows=ROWS)
        data.chmod(0o755)
        Path(directory).chmod(0o755)
        pairs = []
        for number in range(RUNS + 1):
            bare = _seconds(["--entrypoint", "python"], ["-c", BARE], "first step")
            ours = _seconds(["--volume", f"{data}:/data:ro"], [
                "--data", "/data", "--output", "/tmp/run", "--steps", "1000000", "--log-every", "1",
                "--steps-per-call", "1", "--jit", "off", "--hidden", "256", "--global-batch",
                str(BATCH),
            ], "train  step 1/")  # fmt: skip
            if number:  # the first reads both from the disk
                pairs.append((ours, bare))
    return result(
        "cold_start_share", pairs, against="a bare script in the same image", target=TARGET,
        upper_bound=True,
        extra={"seconds": [round(ours, 2) for ours, _ in pairs]},
    )  # fmt: skip


def _seconds(options: list[str], argv: list[str], sign: str) -> float:
    """Returns how long it takes until the container says `sign`."""
    client = shutil.which("docker") or "docker"
    began = time.perf_counter()
    process = subprocess.Popen(
        [client, "run", "--rm", "--init", *options, IMAGE, *argv],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    said: list[str] = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if sign in line:
                return time.perf_counter() - began
            if time.perf_counter() - began > _SECONDS:
                break
    finally:
        process.terminate()
        process.wait(60)
    raise RuntimeError(f"the container never said {sign!r}:\n{''.join(said)}")
