"""`castell doctor`: the cluster this process would join, the strategy it would choose, and why.

Looks without touching: TensorFlow is not imported and no peer is called, so GPUs are counted by
their device files. `--probe` asks TensorFlow for the GPUs (10 s) and connects to every peer; only
then does an unreachable one count as a problem, since before the start nobody listens.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from typing import Any

from trainer.cluster.devices import find_devices, glimpse_devices
from trainer.cluster.resolve import resolve
from trainer.cluster.spec import ClusterSpec, split_address
from trainer.cluster.strategy import choose
from trainer.errors import EXIT_DONE, UsageError

HELP = "show the cluster this process would join, the strategy it would choose and why"

_PROBE_SECONDS = 3.0
_STRATEGIES = ("auto", "one_device", "mirrored", "multi_worker", "tpu")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `castell doctor`; those of the cluster mean the same as in training."""
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--probe", action="store_true", help="connect to peers, ask for devices")
    parser.add_argument("--alone", action="store_true", help="ignore signs of other tasks")
    parser.add_argument("--workers", type=int, metavar="N", help="how many workers train")
    parser.add_argument("--strategy", choices=_STRATEGIES, default="auto", help="ask for one")
    parser.add_argument(
        "--cpu-replicas", type=int, default=1, metavar="N", help="split the CPU into N devices"
    )


def run(args: argparse.Namespace) -> int:
    """Prints the findings; returns 0.

    Raises:
      UsageError: there is a problem; the findings are printed before that.
    """
    findings = examine(args)
    if args.json:
        print(json.dumps(findings))
    else:
        _print_text(findings)
    sys.stdout.flush()
    if findings["problems"]:
        raise UsageError("; ".join(findings["problems"]))
    return EXIT_DONE


def examine(args: argparse.Namespace) -> dict[str, Any]:
    """Returns {"cluster", "task", "strategy", "reason", "source", "problems"}.

    What is not known because of a problem is null; a task with nothing to do has no strategy.
    """
    findings: dict[str, Any] = {
        "cluster": None, "task": None, "strategy": None, "reason": None, "source": None,
        "problems": [],
    }  # fmt: skip
    try:
        spec = resolve(os.environ, alone=args.alone, workers=args.workers)
        findings.update(spec.tf_config(), source=spec.source)
        findings["strategy"], reason = _strategy(spec, args)
        findings["reason"] = "; ".join((reason, *spec.notes))
    except UsageError as error:
        findings["problems"] = [str(error)]
        return findings
    if args.probe:
        findings["problems"] = _unreachable(spec)
    return findings


def _strategy(spec: ClusterSpec, args: argparse.Namespace) -> tuple[str | None, str]:
    if spec.role == "ps":
        return None, "a parameter server has nothing to do here: it would leave with 0"
    devices = find_devices(os.environ) if args.probe else glimpse_devices(os.environ)
    choice = choose(spec, args.strategy, devices, args.cpu_replicas)
    return choice.name, choice.reason


def _unreachable(spec: ClusterSpec) -> list[str]:
    if spec.starts_here:
        return []
    problems = []
    for rank, address in enumerate(spec.workers):
        if spec.role in ("chief", "worker") and rank == spec.rank:
            continue
        try:
            socket.create_connection(split_address(address), timeout=_PROBE_SECONDS).close()
        except OSError as error:
            why = error.strerror or str(error)
            problems.append(f"{spec.name(rank)} cannot be reached: {why}")
    return problems


def _print_text(findings: dict[str, Any]) -> None:
    for key in ("cluster", "task", "strategy", "reason", "source"):
        value = findings[key]
        if value is not None:
            print(f"{key:9} {json.dumps(value) if isinstance(value, dict) else value}")
