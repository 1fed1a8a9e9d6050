"""The text task: what is a word, which vocabulary, and that it tells two handbooks apart."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.trainer.tasks.made import make, paragraphs
from trainer.data.dataset import Dataset
from trainer.data.manifest import Feature
from trainer.data.rows import raw_features, read_rows
from trainer.errors import UsageError
from trainer.task import Batch
from trainer.tasks.text import tokens
from trainer.tasks.text.options import TextOptions
from trainer.tasks.text.task import Text
from trainer.tasks.text.vocabulary import Vocabulary, learned


@pytest.fixture(scope="module")
def handbooks(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return make(tmp_path_factory.mktemp("handbooks"), paragraphs())


def built(data: Dataset, **options: Any) -> Text:
    task = Text(TextOptions.model_validate(options))
    task.build(data)
    return task


def found(*texts: str, lowercase: bool = True) -> list[list[str]]:
    words = tokens.words(tf.constant(texts), length=5, lowercase=lowercase)
    return [[word.decode() for word in row] for row in words.to_list()]


def test_words_of_any_script_are_told_apart() -> None:
    assert found("It's 5 o'clock, Zoë!", "", "…") == [["it's", "5", "o'clock", "zoë"], [], []]
    assert found("Ein Öl", lowercase=False) == [["Ein", "Öl"]]
    assert found("東京 tower") == [["東", "京", "tower"]]
    assert found("a b c d e f g") == [["a", "b", "c", "d", "e"]]


def test_misspelt_words_share_most_of_their_pieces() -> None:
    texts = tf.constant(["vocabulery", "vocabulary", "tulip", ""])
    pieces = tokens.pieces(tokens.words(texts, length=2, lowercase=True), 2, 1 << 20).numpy()
    assert pieces.shape == (4, 2, tokens.MOST_PIECES)
    kinds = [set(row[0]) - {tokens.NONE} for row in pieces]
    assert len(kinds[2]) == 1 + 5 + 4
    assert len(kinds[0] & kinds[1]) == 12
    assert not kinds[0] & kinds[2]
    assert not pieces[:, 1].any()
    assert not pieces[3].any()


def test_frequent_words_have_an_index_of_their_own(tmp_path: Path) -> None:
    texts = ["red red blue", "red green", "blue sky", "rare red", "", "blue"]
    data = make(tmp_path, {"t": texts * 5, "y": [0, 1] * 15})
    column = data.manifest.feature("t")
    words = learned(data, column, TextOptions(vocabulary=2, least_count=2))
    layer = Vocabulary(5, 3)
    layer.fill(words)
    prints = tokens.fingerprints(
        tokens.words(tf.constant(["red blue sky green", ""]), length=5, lowercase=True), 5
    )
    index = layer(prints).numpy()
    assert sorted(index[0, :2]) == [4, 5]
    assert set(index[0, 2:4]) <= {1, 2, 3}
    assert index[0, 4] == tokens.NONE
    assert not index[1].any()
    everything = learned(data, column, TextOptions(vocabulary=100, least_count=1))
    assert len(everything) == 5  # red, blue, green, sky, rare
    layer.fill(everything)
    assert layer(prints).numpy()[0, :4].min() >= 4


def test_without_the_rows_the_vocabulary_comes_with_the_weights(
    handbooks: Dataset, tmp_path: Path
) -> None:
    trained = built(handbooks, length=8, hidden="8")
    trained.learn(handbooks)
    copy = tmp_path / "description"
    copy.mkdir()
    for name in ("manifest.json", "statistics.json"):
        shutil.copy(f"{handbooks.path}/{name}", copy)
    loaded = built(Dataset.open(str(copy)), length=8, hidden="8")
    loaded.model.set_weights(trained.model.get_weights())
    texts = {"doc": tf.constant(["Returns the shape of an array.", "A Keras layer."])}
    one, other = (task.serve(task.preprocess(texts))["probability"] for task in (trained, loaded))
    assert np.array_equal(one, other)
    index = loaded.model.get_layer("vocabulary")(loaded.preprocess(texts)["words"]).numpy()
    assert (index > 1000).sum() > 5, "words of the vocabulary are known"


def test_the_column_is_found_or_asked_for(handbooks: Dataset) -> None:
    manifest = handbooks.manifest
    kind = Feature(name="kind", dtype="string", dictionary=("a", "b"))
    other = Feature(name="title", dtype="string")

    def chosen(*features: Feature, **options: Any) -> str:
        data = manifest.model_copy(update={"features": (*features, *manifest.features)})
        return Text(TextOptions(**options)).inputs(data)[0].name

    assert chosen() == chosen(kind) == "doc"
    assert chosen(kind, text="kind") == "kind"
    with pytest.raises(UsageError, match="--text must say which column to read: kind, title, doc"):
        chosen(kind, other)
    with pytest.raises(UsageError, match="--text n: the column is int64, not text"):
        chosen(Feature(name="n", dtype="int64"), text="n")


@pytest.mark.parametrize(
    ("encoder", "kind"),
    [("mean", "words"), ("conv", "words"), ("gru", "words"), ("mean", "subwords")],
)
def test_it_tells_handbooks_apart(handbooks: Dataset, encoder: str, kind: str) -> None:
    keras.utils.set_random_seed(0)
    task = built(handbooks, encoder=encoder, tokens=kind, length=32, embedding_size=16)
    task.learn(handbooks)
    rows = {}
    for split in ("train", "test"):
        parts = [
            (raw_features(handbooks, block, ["doc", "y"])) for block in read_rows(handbooks, split)
        ]
        text, label = (np.concatenate([part[name] for part in parts]) for name in ("doc", "y"))
        rows[split] = task.preprocess({"doc": tf.constant(text)}), label.astype(np.float32)
    features, label = rows["train"]
    weights = task.trained_variables()
    optimizer = keras.optimizers.Adam(1e-2)

    @tf.function
    def step() -> None:
        with tf.GradientTape() as tape:
            batch = Batch(features, tf.constant(label), tf.ones(len(label)))
            loss = tf.reduce_mean(task.loss(batch, True))
        optimizer.apply(tape.gradient(loss, [w.value for w in weights]), weights)

    for _ in range(12):
        step()
    features, label = rows["test"]
    chosen = task.serve(features)["probability"].numpy() > 0.5
    assert np.mean(chosen == label) > 0.85
