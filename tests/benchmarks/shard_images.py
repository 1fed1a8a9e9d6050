"""CPU-seconds of `castell shard` on a folder of 20,000 PNGs against the loop that tutorials show.

The loop reads each file, decodes it to see that it is an image, and writes a tf.train.Example. Ours
decodes each image too, and shuffles, splits, hashes and takes statistics.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import tensorflow as tf
from PIL import Image

from components.shard_data.options import ShardOptions
from components.shard_data.shard import shard
from tests.benchmarks.harness import Result, compare

IMAGES, CLASSES, SIDE = 20_000, 10, 28
RUNS = 3
TARGET = 1.0


def bench() -> Result:
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory, "images")
        _write(folder)
        return compare(
            "shard_images",
            ours=partial(_ours, folder, Path(directory, "ours")),
            other=partial(_loop, folder, Path(directory, "theirs")),
            against="read + decode_png + tf.train.Example + TFRecordWriter, image by image",
            target=TARGET,
            runs=RUNS,
        )


def _write(folder: Path) -> None:
    draw = np.random.default_rng(0)
    for number in range(IMAGES):
        path = folder / f"class{number % CLASSES}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = draw.integers(0, 256, (SIDE, SIDE), np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "png")
        path.write_bytes(file.getvalue())


def _ours(folder: Path, output: Path) -> None:
    shutil.rmtree(output, ignore_errors=True)
    given = {"sources": [str(folder)], "output": str(output), "label": "label", "processes": 1}
    manifest = shard(ShardOptions.parse(given))
    assert manifest.rows == IMAGES


def _loop(folder: Path, output: Path) -> None:
    with tf.io.TFRecordWriter(str(output)) as writer:
        for path in sorted(folder.glob("*/*")):
            data = path.read_bytes()
            tf.io.decode_png(data)
            feature = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[data])),
                "label": tf.train.Feature(
                    bytes_list=tf.train.BytesList(value=[path.parent.name.encode()])
                ),
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())
