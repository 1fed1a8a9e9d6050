"""`castell compile`: a pipeline for one target, or a component for anybody's pipeline, as YAML."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.image import IMAGE, IMAGE_VARIABLE, check_reference, with_image
from pipelines import settings, targets
from pipelines.targets import TARGETS
from pipelines.targets.images import oddities
from trainer.errors import UsageError, suggestion

HELP = "write a pipeline or a component as YAML"

PIPELINES = ("train_evaluate_export",)
COMPONENTS = (
    "shard_data", "validate_data", "train_model", "evaluate_model", "export_model",
    "register_model", "deploy_model",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's flags."""
    parser.add_argument("pipeline", metavar="PIPELINE", help=", ".join(PIPELINES + COMPONENTS))
    parser.add_argument("--output", required=True, help="file to write, .yaml")
    parser.add_argument("--target", help=f"{', '.join(TARGETS)} [local]; a component has none")
    parser.add_argument(
        "--workers",
        type=int,
        help="default of the parameter workers [1]; vertex: their number, there is no parameter",
    )
    parser.add_argument("--image", help=f"image of every step [${IMAGE_VARIABLE} or {IMAGE}]")
    settings.add_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Writes the file and says so."""
    compile_to(
        args.output,
        args.pipeline,
        target=args.target,
        workers=args.workers,
        image=args.image,
        flags=settings.given_flags(args),
        settings_file=args.settings,
    )
    print(f"wrote {args.output}")
    return 0


def compile_to(
    output: str,
    name: str,
    *,
    target: str | None = None,
    workers: int | None = None,
    image: str | None = None,
    flags: Mapping[str, str] | None = None,
    settings_file: str | None = None,
    read: Any = None,
) -> None:
    """Compiles `name` into the file `output`, which appears whole or not at all.

    `flags` and `settings_file` say what `pipelines.settings` reads for the target; `read` is what
    it has read already.

    Raises:
      UsageError: there is no such pipeline, component or target, `output` cannot be written, or
        the target's settings are wrong.
    """
    known = PIPELINES + COMPONENTS
    if name not in known:
        near = suggestion(name, list(known))
        raise UsageError(f"no pipeline or component {name!r}{near}: there are {', '.join(known)}")
    if target is not None and target not in TARGETS:
        near = suggestion(target, list(TARGETS))
        raise UsageError(f"--target {target!r}{near}: there are {', '.join(TARGETS)}")
    if workers is not None and workers < 1:
        raise UsageError(f"--workers ({workers}): must be at least 1")
    if name in COMPONENTS and (target, workers) != (None, None):
        raise UsageError(f"{name} is a component, the same everywhere: no --target, no --workers")
    if name in COMPONENTS and (flags or settings_file):
        raise UsageError(f"{name} is a component, the same everywhere: it has no settings")
    _check_output(Path(output))
    image = default_image() if image is None else image
    check_reference(image)
    if name in COMPONENTS:
        _write(Path(output), _component(name, image))
        return
    target, workers = target or "local", workers or 1
    is_first = read is None
    read = settings.read(target, flags or {}, file=settings_file) if is_first else read
    loaded = targets.load(target, read, image=image, workers=workers)
    if is_first:
        tell_oddities(target, read, image)
    _write(Path(output), _pipeline(loaded, image, workers))


def tell_oddities(target: str, read: Any, image: str) -> None:
    """Says on stderr what will likely not work with this image there."""
    for line in oddities(target, read, image):
        print(f"castell: {line}", file=sys.stderr)


def default_image() -> str:
    """Returns the image that steps run in, unless it is named."""
    return os.environ.get(IMAGE_VARIABLE) or IMAGE


def _component(name: str, image: str) -> Any:
    module = importlib.import_module(f"components.{name}.component")
    return with_image(getattr(module, name), image)


def _pipeline(target: targets.Target, image: str, workers: int) -> Any:
    from pipelines.train_evaluate_export import build

    return build(target, image=image, workers=workers)


def _check_output(output: Path) -> None:
    if output.suffix not in (".yaml", ".yml"):
        raise UsageError(f"--output {output}: must end in .yaml")
    # Path's own methods raise for a name that is too long.
    if not os.path.isdir(output.parent):
        raise UsageError(f"--output {output}: no directory {output.parent}")
    if os.path.isdir(output):
        raise UsageError(f"--output {output}: is a directory")


def _write(output: Path, component: Any) -> None:
    from kfp import compiler

    try:
        with tempfile.TemporaryDirectory(dir=output.parent, prefix=".castell-") as directory:
            part = Path(directory, output.name)
            compiler.Compiler().compile(component, str(part))
            part.replace(output)
    except OSError as error:
        raise UsageError(f"--output {output}: {error.strerror or error}") from None
