"""`--param` is read by the declared type; each mistake is named."""

from typing import Any

import pytest

from pipelines.parameters import check, parse
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
        (["label=x", "config={a: 2026-13-01}"], "month must be in"),
        (["label=x", "config={a: 1, a: 2}"], "'a' stands there twice"),
        (["label=x", "config=" + "[" * 3000], "nested too deeply"),
    ],
)
def test_a_mistake_is_named(texts: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse(texts, DECLARED)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("epochs=nan", "epochs .nan.: must be a number"),
        ("epochs=1e999", "epochs .inf.: must be a number"),
        ("steps=99999999999999999999999", "must be a number up to"),
        ("config={a: [{b: 2026-01-01}]}", r"config.a\[0\].b .2026-01-01.: a date"),
        ("config={a: .nan}", "config.a .nan.: must be a number"),
        ("config=&a {b: *a}", "config.b: holds itself"),
        ("config={a: " + "[" * 40 + "]" * 40 + "}", "nested too deeply"),
        ("sources=[1]", "sources .1.: no text"),
        ("label=\udcff", "is not UTF-8"),
    ],
)
def test_what_json_has_not_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check(parse([text, *([] if text.startswith("label") else ["label=x"])], DECLARED))


@pytest.mark.parametrize("rule", [1, ["a"], None])
def test_a_threshold_that_is_no_text_is_refused(rule: object) -> None:
    with pytest.raises(UsageError, match=r"parameter thresholds .*: no text"):
        check({"thresholds": [rule]})


def test_a_key_is_what_stands_there() -> None:
    assert parse(["label=x", "config={1: 2, no: 3}"], DECLARED)["config"] == {"1": 2, "no": 3}
    with pytest.raises(UsageError, match="key 1 is no text"):
        check({"config": {1: 2}})
