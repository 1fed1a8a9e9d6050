"""Which column a task of one input reads: the one that is named, or the only one that it can be."""

from __future__ import annotations

from collections.abc import Sequence

from trainer.data.manifest import Feature, Manifest
from trainer.errors import UsageError, suggestion


def choose(
    manifest: Manifest, *, key: str, named: str | None, candidates: Sequence[Feature], wanted: str
) -> Feature:
    """Returns the column that option `key` names, else the only candidate.

    Args:
      manifest: of the data.
      key: the option, as in `--image`.
      named: its value.
      candidates: the columns that fit.
      wanted: what a column must be, for the error.

    Raises:
      UsageError: the named column is not there or does not fit; or none or several fit.
    """
    fitting = [f.name for f in candidates]
    if named is not None:
        known = [f.name for f in manifest.inputs]
        if named not in known:
            raise UsageError(
                f"--{key} {named}: column {named!r} is not in the data{suggestion(named, known)}"
            )
        if named not in fitting:
            raise UsageError(
                f"--{key} {named}: the column is {_spelt(manifest.feature(named))}, not {wanted}"
            )
        return manifest.feature(named)
    if not fitting:
        raise UsageError(f"the data has no column for --{key}: none is {wanted}")
    if len(fitting) > 1:
        raise UsageError(f"--{key} must say which column to read: {', '.join(fitting)}")
    return manifest.feature(fitting[0])


def _spelt(feature: Feature) -> str:
    return feature.dtype + "".join(f"[{'?' if n is None else n}]" for n in feature.shape)
