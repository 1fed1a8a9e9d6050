"""The `castell` command: finds the subcommand, imports it alone, turns expected ends into one line.

Nothing heavy is imported for `castell --help`; what a subcommand does lives in its own module
(`HELP`, `add_arguments(parser)`, `run(args) -> int`).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from trainer.errors import EXIT_FAULT, EXIT_INTERRUPTED, CastellError, UsageError, suggestion

EXIT_BROKEN_PIPE = 141
# How streams take what their encoding has not: by an error.
_STRICT = ("strict", "surrogateescape")

# Command -> its module and its line in the overview. The line stands here, too, so that the
# overview imports none of the modules.
COMMANDS = {
    "shard": (
        "components.shard_data.command",
        "turn tables into a dataset directory: shards, schema, statistics",
    ),
    "validate": (
        "components.validate_data.command",
        "check a dataset, alone or against a baseline, before training",
    ),
    "train": (
        "trainer.__main__",
        "train on a dataset, on one worker or many",
    ),
    "evaluate": (
        "components.evaluate_model.command",
        "measure a run on a whole split, by slice, against thresholds",
    ),
    "export": ("components.export_model.command", "write a run's model as a checked SavedModel"),
    "compile": ("pipelines.compile", "write a pipeline or a component as YAML"),
    "run": ("pipelines.run", "run a pipeline on this machine"),
    "submit": ("pipelines.submit.command", "run a pipeline on KFP or Vertex AI"),
    "status": ("pipelines.submit.status", "say what became of a submitted run"),
    "cancel": ("pipelines.submit.cancel", "end a submitted run, or remove a schedule"),
    "traffic": (
        "pipelines.submit.traffic",
        "shift an endpoint's traffic to its newest model, or back",
    ),
    "logs": ("pipelines.submit.logs", "print what the steps of a submitted run wrote"),
    "peek": ("trainer.data.peek", "print the rows that a training step sees"),
    "doctor": (
        "trainer.doctor",
        "say which cluster this process would join, and why; or check a run for a TPU",
    ),
}

# What each extra brings: the package that is missing tells which one was not installed.
EXTRAS = {
    "trainer": ("tensorflow", "keras", "numpy", "pydantic", "yaml", "fsspec", "google_crc32c"),
    "components": ("pyarrow", "tensorflow_metadata", "tfx_bsl", "sklearn", "matplotlib", "jinja2"),
    "pipelines": ("kfp", "google", "google_cloud_pipeline_components"),
}


class _Parser(argparse.ArgumentParser):
    """An ArgumentParser whose complaint is one `UsageError` line, without the usage text."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")

    def check_options(self, argv: Sequence[str]) -> None:
        """Refuses an unknown `--option` before argparse complains of what it stands for."""
        known = [option for action in self._actions for option in action.option_strings]
        for token in argv:
            if token == "--":
                return
            name = token.partition("=")[0]
            if name.startswith("--") and name not in known:
                near = suggestion(name, known)
                raise UsageError(f"unknown option {name}{near} (see {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; faults of our own keep their traceback."""
    _prepare_streams()
    try:
        code = _dispatch(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return code
    except CastellError as error:
        _complain(_one_line(str(error)))
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _silence_stdout()  # the reader has left (`castell peek … | head`)
        return EXIT_BROKEN_PIPE
    except OSError as error:
        if not _stdout_fails():
            raise
        _silence_stdout()
        _complain(f"stdout cannot be written: {error.strerror}")
        return EXIT_FAULT


def _prepare_streams() -> None:
    """Makes stdout and stderr take all that is printed: closed ones, and ASCII's."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - as long as the process
        elif isinstance(stream, io.TextIOWrapper) and stream.errors in _STRICT:
            is_utf8 = stream.encoding.lower().replace("-", "") == "utf8"
            if not (is_utf8 and stream.errors == "surrogateescape"):
                stream.reconfigure(errors="replace")


def _complain(text: str) -> None:
    with contextlib.suppress(OSError):  # the exit code still tells
        print(f"castell: error: {text}", file=sys.stderr)


def _stdout_fails() -> bool:
    try:
        print(flush=True)  # what failed may have been dropped: only another line tells
    except OSError:
        return True
    return False


def _silence_stdout() -> None:
    """Lets the flush at exit complain of nothing."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _one_line(text: str) -> str:
    """Spells out what would break the line, or the terminal: names come from people's files."""
    spelt = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return "".join(spelt)


def _dispatch(argv: list[str]) -> int:
    name = argv[0] if argv else "--help"
    if name in ("-h", "--help"):
        print(_overview())
        return 0
    if name == "--version":
        from importlib.metadata import version

        print(f"castell {version('castell')}")
        return 0
    if name not in COMMANDS:
        near = suggestion(name, list(COMMANDS))
        raise UsageError(f"unknown command {name!r}{near} (see castell --help)")
    try:
        return _run(name, argv[1:])
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        for extra, packages in EXTRAS.items():
            if package in packages:
                raise UsageError(
                    f"castell {name} needs {package}: pip install 'castell[{extra}]'"
                ) from None
        raise


def _run(name: str, argv: list[str]) -> int:
    module: Any = importlib.import_module(COMMANDS[name][0])
    prog = f"castell {name}"
    if name == "train":
        return module.main(argv, prog=prog)
    parser = _Parser(prog=prog, description=module.HELP, allow_abbrev=False)
    module.add_arguments(parser)
    parser.check_options(argv)
    args = parser.parse_args(argv)
    from trainer.run.faults import stop_raises

    with stop_raises():
        return module.run(args)


def _overview() -> str:
    lines = [f"  {name:<10}{line}" for name, (_, line) in COMMANDS.items()]
    return "\n".join(
        (
            "usage: castell COMMAND [OPTION]...",
            "",
            "Trains TensorFlow models across machines, step by step or as a Kubeflow pipeline.",
            "",
            *lines,
            "",
            "castell COMMAND --help says more; castell --version names this release.",
        )
    )


if __name__ == "__main__":
    sys.exit(main())
