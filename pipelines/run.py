"""`castell run`: the compiled pipeline on this machine, through `kfp.local`.

Each step is a process of this environment, or a container (`pipelines.runners`). What it leaves
stands in `<workdir>/<pipeline>-<time>/<step>/<artifact>`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.image import IMAGE, IMAGE_VARIABLE
from pipelines import foresight, parameters
from pipelines.compile import PIPELINES, compile_to
from pipelines.compiled import Compiled
from pipelines.console import Console
from pipelines.runners import RUNNERS, stops_passed_on
from pipelines.runners import load as load_runner
from trainer.errors import EXIT_USAGE, CastellError, Stopped, UsageError, suggestion

HELP = "run a pipeline on this machine"


EXECUTOR_OUTPUT = "executor_output.json"
_CODE = re.compile(r"(?:training|its container) ended with exit code (\d+)")


class StepFailed(CastellError):
    """A step of the pipeline ended with an error, which stands in the message.

    The exit code is the trainer's or its container's, 2 for another step's one-line error, else 1.
    """

    def __init__(self, step: str, error: str) -> None:
        expected = error.startswith("castell: error: ")
        error = error.removeprefix("castell: error: ")
        super().__init__(f"step {step} failed: {error}")
        if code := _CODE.search(error):
            self.exit_code = int(code[1])
        elif expected:
            self.exit_code = EXIT_USAGE


@dataclass(frozen=True)
class Finished:
    """A run that ended well: its directory and the names of the steps that ran, in order."""

    root: Path
    steps: tuple[str, ...]

    def artifact(self, step: str, name: str) -> Path:
        """Returns where a step left an artifact."""
        return self.root / step / name


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's flags."""
    parser.add_argument(
        "pipeline", metavar="PIPELINE", help=f"{', '.join(PIPELINES)}, or a compiled .yaml"
    )
    parser.add_argument(
        "--runner",
        default="subprocess",
        help="subprocess: processes of this environment; docker: containers of the steps' image "
        "[subprocess]",
    )
    parser.add_argument("--image", help=f"image of the containers [${IMAGE_VARIABLE} or {IMAGE}]")
    parser.add_argument(
        "--cache",
        action="store_true",
        help="take a step that ran before in the same workdir with the same parameters as it was; "
        "what is in files, or in a module of yours, is not looked at",
    )
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a parameter of the pipeline; again for each, and for each value of a list",
    )
    parser.add_argument(
        "--params", action="store_true", help="list the parameters, and run nothing"
    )
    parser.add_argument("--workdir", default="runs", help="where the artifacts go [runs]")
    parser.add_argument("--verbose", action="store_true", help="all that kfp.local prints")


def run(args: argparse.Namespace) -> int:
    """Runs the pipeline and says where its artifacts are."""
    if args.runner not in RUNNERS:
        near = suggestion(args.runner, list(RUNNERS))
        raise UsageError(f"--runner {args.runner!r}{near}: there are {', '.join(RUNNERS)}")
    with _compiled(args.pipeline, args.image) as file:
        if args.params:
            print("\n".join(parameters.table(Compiled.read(file).parameters)))
            return 0
        finished = run_compiled(
            file, args.param, workdir=args.workdir, runner=args.runner, cache=args.cache,
            verbose=args.verbose,
        )  # fmt: skip
        skipped = [step for step in Compiled.read(file).steps if step not in finished.steps]
    for step in skipped:
        why = "as in an earlier run, or " if args.cache else ""
        print(f"▸ {step}\n    skipped: {why}the condition on it does not hold")
    print(f"artifacts: {finished.root}")
    for step in finished.steps:
        made = finished.root / step
        names = sorted(p.name for p in made.iterdir() if _is_artifact(p)) if made.is_dir() else []
        print(f"  {step}/  {'  '.join(names)}")
    return 0


def run_compiled(
    file: str, params: list[str] | Mapping[str, Any], *, workdir: str, runner: str = "subprocess",
    cache: bool = False, verbose: bool = False,
) -> Finished:  # fmt: skip
    """Runs a compiled pipeline; `params` as KEY=VALUE texts, or as values that are passed on.

    Args:
      file: the YAML.
      params: of the pipeline.
      workdir: where artifacts go.
      runner: one of `pipelines.runners.RUNNERS`.
      cache: a step that ran in `workdir` with the same inputs is not run again.
      verbose: show all that kfp.local prints.

    Raises:
      UsageError: the parameters do not fit the pipeline.
      StepFailed: a step failed; names it and its error.
      Stopped: this process was told to stop, and the step has ended.
    """
    from kfp import components, local

    compiled = Compiled.read(file)
    compiled.check_target("local")
    declared = compiled.parameters
    arguments = params if isinstance(params, Mapping) else parameters.parse(params, declared)
    parameters.check(arguments)
    foresight.check(compiled, arguments)
    pipeline = components.load_component_from_file(file)
    # Steps write to a pipe: without this their lines would come in blocks, at the end.
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    os.environ["PYTHONIOENCODING"] = "utf-8"  # between us; the terminal may take less
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    place = Path(workdir).resolve()
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place, prefix="."):  # it may be read-only
            pass
    except OSError as fault:
        raise UsageError(f"--workdir {workdir}: {fault.strerror}") from None
    before = {path.name for path in place.iterdir()}
    console = Console(sys.stdout, str(place), verbose=verbose)
    given = {**parameters.defaults(declared), **arguments}
    steps = load_runner(runner, given, compiled.images, place)
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(console),
        stops_passed_on(steps) as stops,
    ):
        # It takes any image that is not called python for a mistake, and tells that display names
        # have no effect here.
        warnings.filterwarnings("ignore", message=".*(non-Python base image|local runner)")
        local.init(
            runner=steps.make(), pipeline_root=str(place), raise_on_error=True, enable_caching=cache
        )
        try:
            pipeline(**arguments)
        except RuntimeError:
            if not console.steps:
                raise
            step = console.steps[-1]
            if stops:
                error = console.error.removeprefix("castell: error: ")
                raise Stopped(f"told to stop in step {step}: {error or 'it left'}") from None
            check_outputs(_root(place, before), console.steps[:-1])
            raise StepFailed(step, console.error) from None
    root = _root(place, before)
    check_outputs(root, console.steps)
    return Finished(Path(workdir, root.relative_to(place)), tuple(console.steps))


def _root(place: Path, before: set[str]) -> Path:
    """Returns the run's own directory: the first that began after `before` was looked at.

    That is `place` if no step made one: all were taken from the cache, or none could start.
    """
    new = {path.name for path in place.iterdir() if path.name[0] != "."} - before
    return place / min(new, key=_start_time, default="")


def check_outputs(root: Path, steps: Sequence[str]) -> None:
    """Raises StepFailed for a step that left nothing: DockerRunner may call it a success.

    (kubeflow/pipelines#13332) One that was taken from the cache has no directory.
    """
    for step in steps:
        if (root / step).is_dir() and not (root / step / EXECUTOR_OUTPUT).is_file():
            raise StepFailed(step, "its container has ended without outputs")


@contextlib.contextmanager
def _compiled(pipeline: str, image: str | None) -> Iterator[str]:
    if pipeline.endswith((".yaml", ".yml")):
        if image:
            raise UsageError(f"--image {image}: {pipeline} names its images: compile it with this")
        if not os.path.isfile(pipeline):  # a long name makes Path raise
            raise UsageError(f"{pipeline}: no such file")
        yield pipeline
        return
    if pipeline not in PIPELINES:
        near = suggestion(pipeline, list(PIPELINES))
        raise UsageError(
            f"no pipeline {pipeline!r}{near}: there is {', '.join(PIPELINES)}, or a compiled .yaml"
        )
    with tempfile.TemporaryDirectory() as directory:
        file = str(Path(directory, f"{pipeline}.yaml"))
        compile_to(file, pipeline, target="local", image=image)
        yield file


def _is_artifact(path: Path) -> bool:
    return path.name != EXECUTOR_OUTPUT


def _start_time(name: str) -> str:
    """Returns what kfp.local puts at the end of a run's name: 2026-01-31-12-59-59-123456."""
    return "-".join(name.split("-")[-7:])
