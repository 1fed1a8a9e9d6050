"""Machines and regions in order of preference: where one has no quota left, the next is tried.

The order stands in the setting `fallbacks`; the choice is kept in the labels of run and training
job, and printed.
"""

from __future__ import annotations

import re
from typing import Any

MACHINE_LABEL, REGION_LABEL = "castell-machine", "castell-region"
# How Google's services word it, in answers and in the errors of tasks.
_NO_QUOTA = re.compile(r"RESOURCE_EXHAUSTED|quota|resources are insufficient|\b429\b", re.I)
RESOURCE_EXHAUSTED = 8


def choices(read: Any) -> list[Any]:
    """Returns the settings of every try; only the first, if there are no fallbacks."""
    fallbacks = getattr(read, "fallbacks", ())
    if not fallbacks:
        return [read]
    tries = [read, *(read.model_copy(update=f.model_dump(exclude_unset=True)) for f in fallbacks)]
    return [
        one.model_copy(
            update={
                "labels": {
                    **one.labels, MACHINE_LABEL: one.machine_type, REGION_LABEL: one.location,
                },
                "fallbacks": (),
            }
        )
        for one in tries
    ]  # fmt: skip


def described(read: Any) -> str:
    """Returns the choice in words."""
    gpus = (
        f" with {read.accelerator_count} {read.accelerator_type}" if read.accelerator_type else ""
    )
    return f"{read.machine_type}{gpus} in {read.location}"


def is_no_quota(code: int, message: str) -> bool:
    """Whether a task's error says that there is nothing to run it on."""
    return code == RESOURCE_EXHAUSTED or bool(_NO_QUOTA.search(message))
