"""The image task: which column, which pixels, what augmentation does, and that it learns digits."""

from __future__ import annotations

import re
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from sklearn.datasets import load_digits

from tests.trainer.tasks.made import make
from trainer.data.dataset import Dataset
from trainer.data.manifest import Feature
from trainer.data.rows import raw_features, read_rows
from trainer.errors import UsageError
from trainer.tasks.image.augment import augmented
from trainer.tasks.image.norm import GroupNorm
from trainer.tasks.image.options import ImageOptions
from trainer.tasks.image.pixels import Encoded, Listed, geometry
from trainer.tasks.image.task import Image
from trainer.tasks.text.task import Text


def png(pixels: Any) -> bytes:
    return bytes(tf.io.encode_png(pixels).numpy())


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """scikit-learn's digits, each as a PNG of 8 x 8 and as a list of 64 values from 0 to 16."""
    found = load_digits()
    levels = (found.images[..., None] * 255 / 16).round().astype(np.uint8)
    columns = {"png": [png(v) for v in levels], "values": found.data, "y": found.target}
    return make(tmp_path_factory.mktemp("digits"), columns)


def built(data: Dataset, **options: Any) -> Image:
    task = Image(ImageOptions.model_validate(options))
    task.build(data)
    return task


def test_files_and_lists_of_the_same_image_are_the_same_pixels(digits: Dataset) -> None:
    raw = raw_features(digits, next(read_rows(digits, "test")), ["png", "values"])
    raw = {name: tf.constant(values) for name, values in raw.items()}
    files = built(digits, image="png", size=8, channels=1)
    lists = built(digits, image="values")
    one, other = files.preprocess(raw)["pixels"], lists.preprocess(raw)["pixels"]
    assert one.shape == other.shape == (64, 8, 8, 1)
    assert one.dtype == tf.uint8
    assert np.abs(one.numpy() - other.numpy()).max() <= 0.5
    shown = lists.scaled({"pixels": other}).numpy()
    assert (shown.min(), shown.max()) == (-1, 1)


def test_all_formats_are_decoded_and_resized() -> None:
    color = np.zeros((6, 10, 3), np.uint8)
    color[..., 0] = 200
    grey = np.full((3, 5, 1), 90, np.uint8)
    files = [png(color), png(grey), tf.io.encode_jpeg(color, quality=100).numpy()]
    feature = Feature(name="file", dtype="string")
    pixels = Encoded.of(feature, ImageOptions(size=4))(tf.constant(files)).numpy()
    assert pixels.shape == (3, 4, 4, 3)
    assert np.ptp(pixels[1]) == 0
    assert pixels[1].max() == 90
    assert np.abs(pixels[[0, 2]].astype(int) - [200, 0, 0]).max() <= 3
    listed = Listed(Feature(name="v", dtype="int64", shape=(8,)), (2, 4, 1), (1, 2, 1), 0, 4)
    assert listed(tf.constant([[0, 0, 4, 4, 0, 0, 4, 4]])).numpy().ravel().tolist() == [
        pytest.approx(255 / 7, abs=1), pytest.approx(255 * 6 / 7, abs=1),
    ]  # fmt: skip


def test_what_is_no_image_names_the_column_and_the_row() -> None:
    encoded = Encoded.of(Feature(name="file", dtype="string"), ImageOptions(size=4))
    files = tf.constant([png(np.zeros((2, 2, 1), np.uint8)), b"<html>"])
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        encoded(files)
    assert re.search(r"column file: not a PNG.*\n\s*1\n.*\n\s*6\n.*\n.*<html>", str(error.value))


def test_the_column_is_found_or_asked_for(digits: Dataset) -> None:
    with pytest.raises(UsageError, match="--image must say which column to read: png, values"):
        built(digits)
    with pytest.raises(UsageError, match="'pgn' is not in the data, did you mean 'png'"):
        built(digits, image="pgn")
    manifest = digits.manifest
    words = Feature(name="w", dtype="string", dictionary=("a",))
    only = manifest.model_copy(update={"features": (*manifest.features[1:], words)})
    assert [f.name for f in Image().inputs(only)] == ["values"]
    square = only.features[0].model_copy(update={"shape": (8, 8)})
    assert Image().inputs(only.model_copy(update={"features": (square, *only.features[1:])}))
    with pytest.raises(UsageError, match="--image w: the column is string, not encoded images"):
        Image(ImageOptions(image="w")).inputs(only)
    none = manifest.model_copy(update={"features": manifest.features[2:]})
    with pytest.raises(UsageError, match="the data has no column for --image"):
        Image().inputs(none)


def test_files_are_taken_before_texts_beside_them(digits: Dataset) -> None:
    files, *others = digits.manifest.features
    image = files.model_copy(update={"logical": "bytes"})
    path = Feature(name="path", dtype="string")
    data = digits.manifest.model_copy(update={"features": (path, image, *others)})
    assert [f.name for f in Image().inputs(data)] == [image.name]
    texts = [f.name for f in Text().inputs(data)]
    assert texts == ["path"]


@pytest.mark.parametrize(
    ("shape", "options", "expected"),
    [
        ((4, 6), {}, (4, 6, 1)),
        ((4, 6, 3), {}, (4, 6, 3)),
        ((24, 3), {"height": 4, "width": 6, "channels": 3}, (4, 6, 3)),
        ((4, 3, 2, 2), {}, (4, 4, 3)),
    ],
)
def test_a_shape_that_the_data_has_is_kept(shape: Any, options: Any, expected: Any) -> None:
    feature = Feature(name="v", dtype="float32", shape=shape)
    assert geometry(feature, ImageOptions(**options)) == expected


def test_lists_have_a_size_or_are_refused() -> None:
    def of(count: int, **options: Any) -> tuple[int, int, int]:
        return geometry(Feature(name="v", dtype="float32", shape=(count,)), ImageOptions(**options))

    assert of(64) == (8, 8, 1)
    assert of(192) == (8, 8, 3)
    assert of(24, height=4, width=6) == (4, 6, 1)
    with pytest.raises(UsageError, match=r"--height, --width and --channels must multiply to 50"):
        of(50)
    with pytest.raises(UsageError, match="must multiply to 64"):
        of(64, channels=3)


@pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
def test_group_norm_is_that_of_keras(policy: str) -> None:
    x = tf.constant(np.random.default_rng(0).normal(3, 2, (2, 5, 4, 12)).astype(np.float32))
    keras.config.set_dtype_policy(policy)
    try:
        found, wanted = GroupNorm(4)(x), keras.layers.GroupNormalization(4)(x)
    finally:
        keras.config.set_dtype_policy("float32")
    assert found.dtype == wanted.dtype
    assert np.abs(found - wanted).max() < (1e-5 if policy == "float32" else 5e-3)


def test_both_norms_make_a_net_of_the_same_shape(digits: Dataset) -> None:
    for norm in ("group", "batch"):
        task = built(
            digits, image="png", size=8, channels=1, widths="8,12", norm=norm, stride=2, grid=1
        )
        assert task.model.output_shape == (None, 10)
        assert len(task.trained_variables()) == 18


def test_augmentation_depends_on_the_rows_seed_alone() -> None:
    rng = np.random.default_rng(0)
    pixels = tf.constant(rng.integers(0, 256, (4, 6, 6, 3)), tf.uint8)
    seed = tf.constant([[1, 2], [3, 4], [5, 6], [1, 2]])
    options = ImageOptions(crop=2, flip=True, brightness=0.2, contrast=0.2)
    whole = augmented(pixels, seed, options)
    halves = [augmented(pixels[i : i + 2], seed[i : i + 2], options) for i in (0, 2)]
    assert whole.dtype == tf.uint8
    assert np.array_equal(whole, tf.concat(halves, 0))
    assert not np.array_equal(whole, pixels)
    shifted = augmented(tf.stack([pixels[0]] * 4), seed, ImageOptions(crop=2)).numpy()
    assert np.array_equal(shifted[0], shifted[3])
    assert not np.array_equal(shifted[0], shifted[1])
    assert augmented(pixels, seed, ImageOptions(crop=0)) is pixels
