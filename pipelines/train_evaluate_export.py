"""The pipeline: shard → validate → train → evaluate → export.

It ends before training if the data is blocked, and exports only if the evaluation passes.

`build` makes it for one target; the DAG is the same for all, but for what a target adds after the
export.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from kfp import dsl

from components.evaluate_model.component import evaluate_model
from components.export_model.component import export_model
from components.image import with_image
from components.shard_data.component import shard_data
from components.train_model.component import train_model
from components.validate_data.component import validate_data
from pipelines.targets import Target

NAME = "train-evaluate-export"


def with_fixed(function: Callable[..., None], name: str, value: Any) -> Callable[..., None]:
    """Returns the function with one parameter decided, which KFP then does not see."""
    signature = inspect.signature(function)
    kept = [parameter for key, parameter in signature.parameters.items() if key != name]

    @functools.wraps(function)
    def fixed(*args: Any) -> None:
        function(**dict(zip((p.name for p in kept), args, strict=True)), **{name: value})

    fixed.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return fixed


def build(target: Target, *, image: str, workers: int) -> Any:
    """Returns the pipeline, its steps running in `image`; `workers` is the parameter's default."""
    shard, validate, train, evaluate, export = (
        with_image(component, image)
        for component in (shard_data, validate_data, train_model, evaluate_model, export_model)
    )

    def pipeline(
        sources: list[str],
        label: str,
        split: str = "train=0.8,eval=0.1,test=0.1",
        null_values: list[str] = [],
        types: dict[str, str] = {},
        drop: list[str] = [],
        label_kind: str = "",
        seed: int = 0,
        shard_options: dict[str, Any] = {},
        baseline: str = "",
        baseline_run: str = "",
        validate_rules: list[str] = [],
        require_valid: bool = True,
        task: str = "tabular",
        workers: int = workers,
        steps: int = 0,
        epochs: float = 0.0,
        config: dict[str, Any] = {},
        evaluate_split: str = "test",
        slices: list[str] = [],
        thresholds: list[str] = [],
        formats: list[str] = ["saved_model"],
    ) -> None:
        """From raw tables to an exported model, if it is good enough.

        Args:
            sources: URIs of the tables: files, directories or globs.
            label: the column that is to be learned.
            split: fractions by name.
            null_values: texts that mean null, everywhere (NA) or in one column (COL=NA).
            types: column types that are not to be inferred.
            drop: columns to leave out.
            label_kind: binary, multiclass or regression; empty: by the values.
            seed: of the split and the shuffle.
            shard_options: the other options of `castell shard`.
            baseline: URI of a dataset that the data is compared with before training.
            baseline_run: URI of a run instead, whose training data it is compared with.
            validate_rules: changes of the rules of `castell validate`, such as "missing<=0.1".
            require_valid: end the pipeline before training if a rule that blocks is broken.
            task: tabular, or your own as pkg.module:Class.
            workers: workers that train together.
            steps: optimizer steps in all; 0: by epochs.
            epochs: passes over the training split; 0: the trainer's default.
            config: further keys of the trainer and of the Task.
            evaluate_split: the split that is evaluated.
            slices: columns whose values are also evaluated one by one.
            thresholds: rules such as "auc>=0.7"; the model is exported if all hold.
            formats: what to export: saved_model.
        """
        sharded = shard(
            sources=sources, label=label, split=split, null_values=null_values, types=types,
            drop=drop, label_kind=label_kind, seed=seed, options=shard_options,
        ).set_display_name("Shard")  # fmt: skip
        target.reach(sharded)
        dataset = sharded.outputs["dataset"]

        validated = validate(
            dataset=dataset, baseline=baseline, run=baseline_run, rules=validate_rules,
            fail=require_valid,
        ).set_display_name("Validate")  # fmt: skip
        target.reach(validated)

        training = target.train(
            train,
            {
                "dataset": dataset, "task": task, "workers": workers, "steps": steps,
                "epochs": epochs, "config": config,
            },
        ).set_display_name("Train")  # fmt: skip
        training.after(validated)
        run = training.outputs["run"]

        evaluated = evaluate(
            dataset=dataset, run=run, split=evaluate_split, slices=slices, thresholds=thresholds
        ).set_display_name("Evaluate")

        with dsl.If(evaluated.outputs["Output"] == True, name="passed"):  # noqa: E712
            exported = export(dataset=dataset, run=run, formats=formats).set_display_name("Export")
            target.release(exported.outputs["model"])

    function: Callable[..., None] = pipeline
    if target.fixed_workers is not None:
        function = with_fixed(pipeline, "workers", target.fixed_workers)
    return dsl.pipeline(
        function,
        name=NAME,
        description="Shard, validate, train, evaluate; export if the verdict passes.",
    )
