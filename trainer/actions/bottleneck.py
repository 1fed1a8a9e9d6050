"""Says when steps wait for rows, and what to change; and when they no longer do."""

from __future__ import annotations

from collections.abc import Callable

from trainer.actions.report import Report

# Below a third, other things decide the speed; two intervals in a row are no accident of the disk.
_SHARE = 0.3
_IN_A_ROW = 3
# Then everybody has read it.
_MOST_TIMES = 3


class Bottleneck:
    """Watches `input_wait_fraction` of the training intervals.

    layout: of the data set. remote: rows come over the network, and no cache keeps them. lanes: of
    the run. shards: of the training split. replicas_here: replicas that one host feeds.
    """

    def __init__(
        self,
        *,
        say: Callable[[str], None],
        layout: str,
        remote: bool,
        lanes: int,
        shards: int,
        replicas_here: int = 1,
    ) -> None:
        self._say = say
        remedies = {
            "read local copies (--cache DIR)": remote,
            "shard the data with --layout blocks": layout == "rows",
            f"use more of the {shards} shards at once (--lanes, now {lanes})": lanes < shards,
            f"shard into more than {shards} shards": lanes == shards,
            "make preprocess and augment lighter": True,
            f"feed fewer replicas from one host (now {replicas_here})": replicas_here > 1,
        }
        self._remedies = "; ".join(text for text, applies in remedies.items() if applies)
        self._slow = self._fast = self._times = 0
        self._waiting = False

    def __call__(self, report: Report) -> None:
        """Takes a training interval."""
        if report.split != "train":
            return
        share = report.metrics.get("input_wait_fraction", 0.0)
        slow = share > _SHARE
        self._slow, self._fast = (self._slow + 1, 0) if slow else (0, self._fast + 1)
        if not self._waiting and self._slow == _IN_A_ROW and self._times < _MOST_TIMES:
            self._waiting = True
            self._times += 1
            self._say(
                f"the input is the bottleneck: steps waited for rows {share:.0%} of the time up to "
                f"step {report.step:,}. What helps: {self._remedies}"
            )
        elif self._waiting and self._fast == _IN_A_ROW:
            self._waiting = False
            self._say(f"the input keeps up again, up to step {report.step:,}")
