"""`--param` is read by the declared type; each mistake is named."""

from typing import Any

import pytest

from pipelines.parameters import parse
from trainer.errors import UsageError

DECLARED: dict[str, dict[str, Any]] = {
    "label": {"parameterType": "STRING"},
    "sources": {"parameterType": "LIST", "isOptional": True},
    "config": {"parameterType": "STRUCT", "isOptional": True},
    "steps": {"parameterType": "NUMBER_INTEGER", "isOptional": True},
    "epochs": {"parameterType": "NUMBER_DOUBLE", "isOptional": True},
    "strict": {"parameterType": "BOOLEAN", "isOptional": True},
}


@pytest.mark.parametrize(
    ("texts", "name", "value"),
    [
        (["label=late"], "label", "late"),
        (["label=a=b"], "label", "a=b"),
        (["label=true"], "label", "true"),
        (["sources=a.csv"], "sources", ["a.csv"]),
        (["sources=a.csv", "sources=b,c.csv"], "sources", ["a.csv", "b,c.csv"]),
        (["sources=[a.csv, b.csv]"], "sources", ["a.csv", "b.csv"]),
        (["sources=[]"], "sources", []),
        (["sources=auc>=0.7"], "sources", ["auc>=0.7"]),
        (["config={batch: 64, hidden: [8, 4]}"], "config", {"batch": 64, "hidden": [8, 4]}),
        (['config={"global_batch": 64}'], "config", {"global_batch": 64}),
        (["steps=10"], "steps", 10),
        (["epochs=2"], "epochs", 2.0),
        (["strict=True"], "strict", True),
    ],
)  # fmt: skip
def test_a_value_is_read_by_its_type(texts: list[str], name: str, value: object) -> None:
    found = parse([*texts, *([] if name == "label" else ["label=x"])], DECLARED)[name]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ([], "label missing: --param label=VALUE"),
        (["label"], "must be KEY=VALUE"),
        (["lable=x"], "no parameter 'lable', did you mean 'label'"),
        (["label=x", "label=y"], "given 2 times"),
        (["label=x", "steps=ten"], "steps .ten.: must be a whole number"),
        (["label=x", "steps=1.5"], "steps .1.5.: must be a whole number"),
        (["label=x", "epochs=many"], "epochs .many.: must be a number"),
        (["label=x", "strict=1"], "must be true or false"),
        (["label=x", "config=7"], "must be a mapping"),
        (["label=x", "config={a"], "must be a mapping"),
        (["label=x", "sources=[a"], "must be a list"),
    ],
)
def test_a_mistake_is_named(texts: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse(texts, DECLARED)
