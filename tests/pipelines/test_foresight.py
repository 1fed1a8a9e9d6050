"""What a late step would refuse is refused before the first one begins."""

import copy
import re
from pathlib import Path

import pytest

from pipelines import foresight, parameters
from pipelines.cli import main
from pipelines.compiled import Compiled
from tests.pipelines import ir
from trainer.errors import UsageError

GIVEN = ("sources=a.csv", "label=late")
WHERE = [("run",), ("submit", "--target", "kfp", "--host", "http://127.0.0.1:9")]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    file = tmp_path_factory.mktemp("ir") / "x.yaml"
    file.write_text(ir.text("train_evaluate_export", "local"))
    return Compiled.read(str(file))


def check(compiled: Compiled, *more: str) -> None:
    names = {text.partition("=")[0] for text in more}
    texts = [*(one for one in GIVEN if one.partition("=")[0] not in names), *more]
    given = parameters.parse(texts, compiled.parameters)
    parameters.check(given)
    foresight.check(compiled, given)


@pytest.mark.parametrize(
    "more",
    [
        (),
        ("thresholds=[auc>=0.7, rmse<=2, 'auc[carrier=A]>=0.6']",),
        ("thresholds=r2>=0.5", "label_kind=regression"),
        ("shard_options={split_column: part}", "evaluate_split=held_out"),
        ("shard_options={split_by: customer, delimiter: ;, shards: 4.0}",),
        ("split=train=0.8,late=0.2", "evaluate_split=late"),
        ("config={global_batch: 64, hidden: [8, 4]}",),
        ("config={options: {hidden: [8]}}", "epochs=2"),
        ("task=mine.late:Late", "config={anything: 1}"),
        ("task=image", "config={eval_every: 5, width: 8, height: 8}", "types={a: text}"),
        ("validate_rules=[missing<=0.1, 'drift[a]=off']", "baseline=gs://b/d"),
    ],
)
def test_what_the_steps_take_passes(compiled: Compiled, more: tuple[str, ...]) -> None:
    check(compiled, *more)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("thresholds=nosuch>=0.5",), "unknown metric 'nosuch'"),
        (("thresholds=aucc>=0.5",), "did you mean 'auc'"),
        (("thresholds=auc is good",), "is not a rule"),
        (("thresholds=auc>=baseline",), "the pipeline evaluates without a baseline"),
        (("thresholds=auc>=0.5", "label_kind=regression"), "regression labels have rmse"),
        (
            ("thresholds=auc>=0.5", "shard_options={label_kind: regression}"),
            "regression labels have rmse",
        ),
        (("evaluate_split=tset",), "did you mean 'test'?: there are train, eval, test"),
        (("split=train=0.9,eval=0.1",), "evaluate_split (test): no such split"),
        (("shard_options={split: 'train=0.9,eval=0.1'}",), "evaluate_split (test): no such"),
        (("config={eval_every: 5, eval_split: dev}",), "config.eval_split (dev): no such split"),
        (("sources=[]",), "name a table"),
        (("sources=gs://",), "sources ('gs://'): names no table"),
        (("sources= ",), "names no table"),
        (("label=",), "--label COL is required"),
        (("epochs=-1",), "epochs (-1.0): input should be greater than 0"),
        (("steps=-5",), "steps (-5): input should be greater than 0"),
        (("split=train=0.9",), "add up to 1"),
        (("split=nonsense",), "is not NAME=VALUE"),
        (("label_kind=binry",), "--label-kind (binry)"),
        (("formats=onnx",), "format 'onnx' is not supported"),
        (("formats=[]",), "at least 1 item"),
        (("config={globl_batch: 64}",), "did you mean 'global_batch'?"),
        (("config={global_batch: many}",), "global_batch (many)"),
        (("config={options: 3}",), "must be a mapping"),
        (("config={data: x}",), "config.data: the pipeline decides it"),
        (("task=tabulr",), "did you mean 'tabular'?"),
        (("shard_options={delimitr: ;}",), "did you mean 'delimiter'?"),
        (("shard_options={output: x}",), "shard_options.output: the pipeline decides it"),
        (("shard_options={types: 3}",), "of another kind"),
        (("types={a: txt}",), "a type is one of"),
        (("drop=late",), "the label cannot be left out"),
        (("seed=-1",), "--seed (-1)"),
        (("validate_rules=mising<=0.1",), "did you mean 'missing'?"),
        (("validate_rules=[1]",), "no text"),
        (("baseline=a", "baseline_run=b"), "name one of them"),
    ],
)  # fmt: skip
def test_a_wrong_word_is_refused(compiled: Compiled, more: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)) as raised:
        check(compiled, *more)
    assert "\n" not in str(raised.value)


def test_of_a_pipeline_of_another_release_nothing_is_known(compiled: Compiled) -> None:
    spec = copy.deepcopy(compiled.spec)
    spec["root"]["inputDefinitions"]["parameters"].pop("validate_rules")
    other = Compiled(compiled.file, spec, {})
    foresight.check(other, {"sources": ["a"], "label": "y", "thresholds": ["nosuch>=1"]})


@pytest.mark.parametrize("where", WHERE)
def test_nothing_has_begun_by_then(
    where: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    params = ("sources=gs://bucket/a.csv", "label=late", "thresholds=nosuch>=0.5")
    flags = [word for param in params for word in ("--param", param)]
    assert main([where[0], "train_evaluate_export", *where[1:], *flags]) == 2
    out, err = capsys.readouterr()
    assert "step evaluate-model would refuse this: " in err
    assert not out
    assert not list(tmp_path.iterdir())
