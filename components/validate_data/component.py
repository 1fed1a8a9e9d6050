"""The KFP face of validation: Dataset in, verdict, figures and a page out."""

from kfp import dsl
from kfp.dsl import HTML, Artifact, Dataset, Input, Metrics, Output

from components.image import IMAGE


# The verdict is the one unnamed output: in kfp 2.17 the local runner takes a condition on a named
# output for false (tests/pipelines/test_kfp_facts.py).
@dsl.component(base_image=IMAGE, install_kfp_package=False)
def validate_data(
    dataset: Input[Dataset],
    validation: Output[Artifact],
    metrics: Output[Metrics],
    report: Output[HTML],
    baseline: str = "",
    run: str = "",
    rules: list[str] = [],
    fail: bool = True,
) -> bool:
    """Checks data before training on it: drift, new categories, missing values, leaks and more.

    Args:
        dataset: what shard_data made.
        validation: the directory of validation.json and validation.html.
        metrics: findings by rule, and how far the worst of each is.
        report: a page with findings and distributions.
        baseline: URI of a dataset to compare with.
        run: URI of a run whose training data to compare with.
        rules: changes of rules such as "missing<=0.1" or "new_category=warn".
        fail: end the step with an error if the data is blocked; otherwise only say so.

    Returns:
        Whether no rule of level block is broken.
    """
    from components.validate_data import step

    return step.run(
        dataset, validation, metrics, report, baseline=baseline, run=run, rules=rules, fail=fail
    )
