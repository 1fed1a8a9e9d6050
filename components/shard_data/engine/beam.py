"""The engine past one machine: each phase is an Apache Beam pipeline over its jobs.

Whatever runner the options choose (Direct, Dataflow, Flink, Spark), its workers must reach the
directory of the output under the same path: what one phase leaves for the next lies there, and so
do results on their way back.
"""

from __future__ import annotations

import importlib
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import TypeAdapter

from components.shard_data.engine import Job, Result
from components.shard_data.work import Work, write_text
from trainer.errors import UsageError, suggestion

_FAILED = ".error"


class Beam:
    """Runs phases with the pipeline options given."""

    def __init__(self, options: Mapping[str, str], work: Work) -> None:
        self._named = tuple(options)
        self._arguments = [f"--{name}={value}" for name, value in options.items()]
        self._work = work
        self._phases = 0

    def __enter__(self) -> Self:
        """Each phase starts a pipeline of its own."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing has to be stopped."""

    def run(self, task: Callable[[Job], Result], jobs: Sequence[Job]) -> Iterator[Result]:
        """Yields the results in order, when all are there.

        Raises:
          UsageError: what a job raises; the first of them, in order.
        """
        # Beam has no types.
        beam: Any = importlib.import_module("apache_beam")
        options: Any = importlib.import_module("apache_beam.options.pipeline_options")
        known = options.PipelineOptions([]).get_all_options()
        for name in self._named:
            if name not in known:
                raise UsageError(
                    f"--beam-option {name}: Apache Beam has no such option{suggestion(name, known)}"
                )
        self._phases += 1
        folder = Path(self._work.root, "results", f"{self._phases:02d}")
        folder.mkdir(parents=True, exist_ok=True)
        try:
            pipeline = beam.Pipeline(options=options.PipelineOptions(self._arguments))
        except (ValueError, ImportError) as error:  # no such runner, or options that it refuses
            raise UsageError(f"--beam-option: {' '.join(str(error).split())}") from None
        with pipeline:
            (
                pipeline
                | beam.Create(list(enumerate(jobs)))
                | beam.Reshuffle()
                | beam.Map(_do, task=task, folder=str(folder))
            )
        adapter = _adapter(task)
        for number in range(len(jobs)):
            path = folder / f"{number:06d}"
            failed = path.with_suffix(_FAILED)
            if failed.exists():
                raise UsageError(failed.read_text("utf-8"))
            yield adapter.validate_json(path.read_text("utf-8"))


def _do(numbered: tuple[int, Any], task: Callable[[Any], Any], folder: str) -> None:
    """Leaves the result where the caller finds it; a user's mistake, too: no try would mend it."""
    number, job = numbered
    path = Path(folder, f"{number:06d}")
    try:
        result = task(job)
    except UsageError as error:
        write_text(path.with_suffix(_FAILED), str(error))
        return
    write_text(path, _adapter(task).dump_json(result).decode())


def _adapter(task: Callable[[Any], Any]) -> TypeAdapter[Any]:
    return TypeAdapter(typing.get_type_hints(task)["return"])
