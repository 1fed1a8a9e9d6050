"""Validates a Dataset artifact and fills the KFP artifacts that the console shows."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from components.steps import Artifact, local_output, location, one_line_ends
from components.validate_data.options import ValidateOptions
from components.validate_data.validation import Validation


def run(
    dataset: Artifact, validation: Artifact, metrics: Any, report: Artifact,
    *, baseline: str, run: str, rules: list[str], fail: bool,
) -> bool:  # fmt: skip
    """Returns whether the data passes; ends the step if it does not and `fail` is set."""
    from components.validate_data.command import print_findings
    from components.validate_data.validate import REPORT, Blocked, validate

    with one_line_ends():
        with local_output(validation) as output, local_output(report) as page:
            found = validate(
                ValidateOptions(
                    data=location(dataset),
                    baseline=baseline or None,
                    run=run or None,
                    output=output,
                    rules=tuple(rules),
                ),
                print,
            )
            print_findings(found, None)
            shutil.copyfile(Path(output, REPORT), page)
        describe(found, validation, metrics)
        # Only now: whoever looks why it ended finds the page.
        if fail and not found.verdict.passed:
            raise Blocked.of(found)
    return found.verdict.passed


def describe(found: Validation, validation: Artifact, metrics: Any) -> None:
    """Puts the verdict on the artifacts: counts, and the worst value of each broken rule."""
    metrics.log_metric("blocked", found.verdict.blocked)
    metrics.log_metric("warned", found.verdict.warned)
    worst: dict[str, float] = {}
    for finding in found.findings:
        worst[finding.rule] = max(worst.get(finding.rule, 0.0), finding.value)
    for rule, value in worst.items():
        metrics.log_metric(rule, value)
    validation.metadata.update(
        {
            "passed": found.verdict.passed,
            "blocked": found.verdict.blocked,
            "warned": found.verdict.warned,
            "dataset_fingerprint": found.fingerprint,
        }
    )
