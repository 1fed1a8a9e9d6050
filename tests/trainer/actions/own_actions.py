"""Actions as a user writes them."""

from __future__ import annotations

from trainer.actions import Report

NOT_CALLABLE = 1


def shout(report: Report) -> None:
    print(f"own action: {report.split} {report.step} {sorted(report.metrics)}", flush=True)


def stop_at_once(report: Report) -> None:
    report.stop("seen enough")


def fail(report: Report) -> None:
    raise RuntimeError("the action's own mistake")
