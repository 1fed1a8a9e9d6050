"""`python -m trainer`: trains one Task, alone or as one worker of a cluster.

Everything that can be said without TensorFlow (help, a wrong flag, a wrong shard) is said before it
is imported.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from trainer import config as configuration
from trainer.command import parse
from trainer.errors import (
    EXIT_DONE,
    EXIT_FAULT,
    EXIT_INTERRUPTED,
    EXIT_PEER_LOST,
    CastellError,
    UsageError,
)
from trainer.quiet import quiet_start
from trainer.streams import tolerate

_GO_ON = (
    "castell: run the same command again to go on from the last checkpoint "
    "(--max-restarts N does so by itself)"
)


def main(argv: list[str] | None = None, prog: str = "python -m trainer") -> int:
    """Runs the command and returns its exit code; a worker of a cluster never returns."""
    arguments = sys.argv[1:] if argv is None else argv
    tolerate("stderr")
    try:
        return _run(arguments, prog)
    except CastellError as error:
        print(f"castell: error: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    except KeyboardInterrupt:  # before there is anything to save
        return EXIT_INTERRUPTED


def _run(arguments: list[str], prog: str) -> int:
    args, flags = parse(arguments, prog)
    from trainer.cluster.resolve import resolve

    spec = resolve(os.environ, alone=args.alone, workers=args.workers)
    if spec.role == "ps":
        print("role ps: this process does not train; leaving", file=sys.stderr)
        return EXIT_DONE
    _check_restarts(args, spec)
    config = configuration.load(args.config, flags)
    if args.check:
        from trainer.check import tpu

        return tpu.run(config, spec)
    tolerate("stdout")  # only here: what --help and --check print is their result
    from trainer.run import directory

    if directory.is_elsewhere(config.output):
        from trainer.supervise import supervise

        return supervise(config, spec, arguments)
    if directory.COPIES_VARIABLE in os.environ:
        from trainer.run.child import die_with_parent

        die_with_parent()  # who copies is gone: what is done here would be seen by nobody
    if spec.role == "evaluator":
        return _evaluate(config, spec)
    from trainer.plan import make_plan

    plan = make_plan(config, spec)
    _check_verification(args, plan)
    if spec.is_chief:
        _announce(plan)
    from trainer.run.faults import sigterm_waits

    with quiet_start(), sigterm_waits():
        import trainer.train  # noqa: F401  ten seconds; workers are forked from the warm process
    if args.verify_scaling is not None:
        return _verify(plan, args.verify_scaling, args.verify_tolerance)
    if spec.starts_here or args.max_restarts:
        return _start_workers(plan, args.max_restarts)
    return work(plan)


def _verify(plan: Any, steps: int, tolerance: float | None) -> int:
    """Compares one replica with all instead of training, and leaves as `work` does."""
    import dataclasses
    import tempfile

    from trainer.cluster.local import run_local
    from trainer.verify import verify

    def compare(spec: Any) -> NoReturn:
        _leave_after(lambda: verify(dataclasses.replace(plan, spec=spec), steps, tolerance))

    if not plan.spec.starts_here:
        compare(plan.spec)
    with tempfile.TemporaryDirectory(prefix="castell-verify-") as logs:
        return run_local(plan.spec.world_size, compare, logs)


def work(plan: Any) -> int:
    """Runs one worker and leaves the process with its exit code."""
    from trainer.train import train

    _leave_after(lambda: train(plan))


def _evaluate(config: Any, spec: Any) -> int:
    """Runs the evaluator of a cluster, and leaves as `work` does."""
    from trainer.run.faults import sigterm_waits

    with quiet_start(), sigterm_waits():
        from trainer.follow import follow
    _leave_after(lambda: follow(config, spec))


def _leave_after(run: Callable[[], None]) -> NoReturn:
    """Calls `run` and leaves with its exit code, past TensorFlow's destructors.

    They can wait for peers that are gone.
    """
    from trainer.run import faults

    code = EXIT_FAULT
    try:
        run()
        code = EXIT_DONE
    except CastellError as error:
        code = error.exit_code
        print(f"castell: error: {error}", file=sys.stderr, flush=True)
    except BaseException:
        traceback.print_exc()
    finally:  # though printing fails: a fork would go on in the code of its parent
        faults.leave(code)


def _check_restarts(args: argparse.Namespace, spec: Any) -> None:
    """Refuses --max-restarts where this process does not start the workers.

    Raises:
      UsageError: it is negative, or nobody is started here.
    """
    if args.max_restarts < 0:
        raise UsageError(f"--max-restarts ({args.max_restarts}) must be at least 0")
    if not args.max_restarts:
        return
    if args.workers is None:
        raise UsageError(
            f"--max-restarts ({args.max_restarts}) needs --workers: it restarts the workers that "
            "this machine starts; elsewhere the platform restarts them"
        )
    if spec.workers and not spec.starts_here:
        raise UsageError(
            f"--max-restarts ({args.max_restarts}): {spec.source} names the workers, so the "
            "platform restarts them; drop the flag, or add --alone"
        )


def _check_verification(args: argparse.Namespace, plan: Any) -> None:
    """Refuses --verify-scaling where there is nothing to compare.

    Raises:
      UsageError: no steps, a tolerance of nothing, or one replica.
    """
    steps, tolerance = args.verify_scaling, args.verify_tolerance
    if tolerance is not None and (steps is None or not tolerance > 0):
        raise UsageError(
            f"--verify-tolerance ({tolerance:g}) must be above 0, and goes with --verify-scaling K"
        )
    if steps is None:
        return
    if steps < 1:
        raise UsageError(f"--verify-scaling ({steps}) must be at least 1, a number of steps")
    if plan.choice.replicas == 1:
        raise UsageError(
            f"--verify-scaling ({steps}): this run has one replica, there is nothing to compare: "
            "add --workers 2 or --cpu-replicas 2, or run it where it will train"
        )


def _start_workers(plan: Any, max_restarts: int) -> int:
    import dataclasses

    from trainer.cluster.local import run_local
    from trainer.run.directory import RunDirectory

    fates: list[str] = []
    code = run_local(
        plan.spec.world_size,
        lambda spec: work(dataclasses.replace(plan, spec=spec)),
        RunDirectory(plan.config.output).logs,
        max_restarts=max_restarts,
        on_failure=fates.append,
    )
    if fates:
        _close_status(plan.config.output, code, fates[0])
    if code == EXIT_PEER_LOST and not max_restarts:
        print(_GO_ON, file=sys.stderr, flush=True)
    return code


def _close_status(output: str, code: int, reason: str) -> None:
    """Writes how the run ended where the chief did not, or knew no more than that it was left."""
    from trainer.run.directory import RunDirectory
    from trainer.run.status import close

    directory = RunDirectory(output)
    with contextlib.suppress(UsageError):  # another run has it, and says itself how it is doing
        directory.lock()
        close(directory.status, code, reason)


def _announce(plan: Any) -> None:
    for note in plan.spec.notes:
        print(note, file=sys.stderr)
    data = "" if plan.lanes is None else f" on {plan.dataset.split('train').rows:,} rows"
    print(
        f"training {plan.config.task}{data} for {plan.config.steps:,} steps of "
        f"{plan.config.global_batch}: {plan.choice.name}, {plan.choice.reason}",
        file=sys.stderr,
        flush=True,
    )
    if plan.config.warmup_steps >= plan.config.steps:
        print(
            f"castell: warning: warmup_steps ({plan.config.warmup_steps}) is all of the run: the "
            "rate ends before it is learning_rate",
            file=sys.stderr,
        )
    if settings := plan.config.settings:
        print(f"with {settings}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
