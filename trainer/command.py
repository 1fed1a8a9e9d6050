"""The command line of `python -m trainer`: its own flags, all configuration keys, and the help."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from trainer import config as configuration
from trainer.errors import UsageError
from trainer.quiet import quiet_start

_DESCRIPTION = """\
Trains a Task on a dataset directory (see `castell shard`) with a custom loop.

The strategy comes from the cluster: TF_CONFIG, Vertex AI's CLUSTER_SPEC, an Indexed Job, or this
machine. Run the same command in every process of the cluster; the first one also writes the run
directory. Running it again resumes from the last checkpoint.
"""
_EPILOG = """\
{options}

metrics of the built-in tasks: loss · binary: auc, accuracy · multiclass: accuracy ·
regression: mae, rmse

exit codes: 0 done · 2 bad configuration or input · 1 a fault, with its traceback · 3 diverged ·
138 a peer was lost (restart all workers, they resume) · 143 told to stop, what is trained is kept

example:
  {prog} --data flights --output run --workers 2 --epochs 5 --hidden 256,128
"""


# All others are configuration keys.
_OWN_FLAGS = (
    "config", "workers", "max_restarts", "alone", "check", "verify_scaling", "verify_tolerance",
)  # fmt: skip


class _Parser(argparse.ArgumentParser):
    """Complains in one line, as everything here does."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def parse(arguments: list[str], prog: str) -> tuple[argparse.Namespace, dict[str, Any]]:
    """Returns the command's own flags, and all configuration keys by name."""
    parser = _Parser(
        prog=prog,
        usage=f"{prog} --data DIR --output DIR [--KEY VALUE]…",
        description=_DESCRIPTION,
        epilog=_EPILOG.format(options=_option_help(arguments, prog), prog=prog),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--config", metavar="FILE", help="YAML of any keys below; flags win")
    parser.add_argument(
        "--workers", type=int, metavar="N", help="start N worker processes on this machine"
    )
    parser.add_argument(
        "--max-restarts", type=int, default=0, metavar="M",
        help="with --workers: start them again, up to M times, if one is lost [0]",
    )  # fmt: skip
    parser.add_argument(
        "--alone", action="store_true", help="ignore signs of other tasks in the environment"
    )
    parser.add_argument(
        "--check", choices=("tpu",), help="do not train: say what would keep the run from a TPU"
    )
    parser.add_argument(
        "--verify-scaling", type=int, metavar="K",
        help="do not train: run K steps on one replica and on all, and compare the weights",
    )  # fmt: skip
    parser.add_argument(
        "--verify-tolerance", type=float, metavar="X",
        help="how far weights and loss may be apart [1e-4; 5e-3 in 16 bits]",
    )  # fmt: skip
    configuration.add_flags(parser)
    args, rest = parser.parse_known_args(arguments)
    flags = {k: v for k, v in vars(args).items() if k not in _OWN_FLAGS}
    return args, {**flags, **_task_flags(parser, rest)}


def _task_flags(parser: argparse.ArgumentParser, rest: list[str]) -> dict[str, str]:
    """Reads `--key value` and `--key=value` of keys that only the Task knows."""
    flags: dict[str, str] = {}
    words = iter(rest)
    for word in words:
        if not word.startswith("--"):
            parser.error(f"unexpected argument: {word}")
        key, equals, value = word[2:].partition("=")
        if not equals:
            try:
                value = next(words)
            except StopIteration:
                parser.error(f"{word} needs a value")
        flags[key] = value
    return flags


def _option_help(arguments: list[str], prog: str) -> str:
    """Returns the tasks' keys; a user's own task is imported only where help is asked for."""
    if {"-h", "--help"}.isdisjoint(arguments):
        return ""
    from trainer.tasks.describe import described_keys

    finder = _Parser(prog=prog, add_help=False, allow_abbrev=False)
    finder.add_argument("--task")
    named, _ = finder.parse_known_args(arguments)
    with quiet_start():
        return described_keys(named.task)
