"""Column names as a SavedModel can hold them."""

from __future__ import annotations

from components.export_model.signatures import input_names
from trainer.data.manifest import Feature


def test_input_names_are_the_columns_where_tensorflow_allows_it_and_always_unique() -> None:
    columns = ["month", "Dep Delay", "dep_delay", "class", "self", "1st", "_x", "a.b", "a/b", "ü"]
    features = [Feature(name=name, dtype="float32") for name in columns]
    assert input_names(features) == {
        "month": "month",
        "Dep Delay": "dep_delay",
        "dep_delay": "dep_delay_2",
        "class": "class_",
        "self": "self_",
        "1st": "x_1st",
        "_x": "x__x",
        "a.b": "a_b",
        "a/b": "a_b_2",
        "ü": "x__",
    }
