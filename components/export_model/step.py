"""Exports a Model artifact (the run) as another (what serves) and says on it what it is."""

from __future__ import annotations

from components.steps import Artifact, local_input, local_output, location, one_line_ends


def run(dataset: Artifact, run: Artifact, model: Artifact, *, formats: list[str]) -> None:
    """Runs `castell export`, checked on rows of `dataset`."""
    from components.export_model.export import export
    from components.export_model.options import ExportOptions

    with one_line_ends(), local_input(run) as trained, local_output(model) as output:
        result = export(
            ExportOptions(
                run=trained, output=output, data=location(dataset), formats=tuple(formats)
            ),
            print,
        )
    differences = {
        f"largest_difference {compared}".replace(" ", "_"): value
        for compared, value in result.parity.items()
    }
    model.metadata.update(
        {
            "framework": "tensorflow",
            "step": result.step,
            "checkpoint_fingerprint": result.fingerprint,
            "compared_rows": result.rows,
            **differences,
        }
    )
