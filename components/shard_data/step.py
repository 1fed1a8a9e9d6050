"""Shards sources into a Dataset artifact and says on it what it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from components.shard_data.options import DEFAULT_SPLIT, ShardOptions
from components.steps import Artifact, local_output, one_line_ends, whole_numbers

# Asked for by name, an empty eval or test split is an error; by default it is left out.
_DEFAULT_SPLIT = ",".join(f"{name}={fraction:g}" for name, fraction in DEFAULT_SPLIT.items())


def run(sources: list[str], dataset: Artifact, **parameters: Any) -> None:
    """Runs `castell shard`; an empty parameter leaves the option at its default."""
    from components.shard_data.shard import shard

    with one_line_ends():
        further = parameters.pop("options")
        with local_output(dataset) as output:
            manifest = shard(options(sources, output, parameters, further), print)
        dataset.metadata.update(
            {
                "rows": manifest.rows,
                **{f"{name}_rows": split.rows for name, split in manifest.splits.items()},
                "features": len(manifest.inputs),
                "label": manifest.label.name,
                "label_kind": manifest.label.kind,
                "layout": manifest.layout,
                "fingerprint": manifest.fingerprint,
            }
        )


def options(
    sources: Sequence[str], output: str, parameters: Mapping[str, Any], further: Mapping[str, Any]
) -> ShardOptions:
    """Returns what the step's parameters and its `options` say together.

    Raises:
      UsageError: an option is unknown, or a value is wrong.
    """
    is_default = parameters["split"] == _DEFAULT_SPLIT
    given = {
        name: value
        for name, value in parameters.items()
        if value and not (name == "split" and is_default)
    }
    return ShardOptions.parse(
        {"sources": tuple(sources), "output": output, **given, **whole_numbers(dict(further))}
    )
