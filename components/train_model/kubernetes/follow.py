"""Waits for a Job: says what it waits for, what befell its pods, and how it ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from components.train_model.kubernetes import look
from components.train_model.kubernetes.cluster import Cluster
from components.train_model.kubernetes.logs import ChiefLog
from components.train_model.kubernetes.manifest import Plan
from components.train_model.launch import TrainingEnded
from trainer.errors import EXIT_PEER_LOST, EXIT_STOPPED, CastellError, Stopped, UsageError

POLL_SECONDS = 1.0
# Retryable, as all codes above 128: there may be a place later.
EXIT_QUEUE_TIMEOUT = 150
_AT_WORK = ("Running", "Succeeded")
# A pod is made, and its image there, within so long; beyond, its waiting wants a word.
_SOON_SECONDS = 30.0
_RESTARTS = (EXIT_PEER_LOST, EXIT_STOPPED)
# 128 + SIGKILL, which comes from the kernel or from outside.
_KILLED = 137
_TAIL_LINES = 50
_ERROR = "castell: error: "


class QueueTimeout(CastellError):
    """The cluster had no place for the pods in all the time that they were given."""

    exit_code = EXIT_QUEUE_TIMEOUT


class Follower:
    """One Job, from its creation (or from where an earlier try left it) to its end.

    say: takes a line for people. clock: seconds, monotonic.
    """

    def __init__(
        self,
        cluster: Cluster,
        plan: Plan,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._plan = plan
        self._say = say
        self._clock = clock
        self._told: set[str] = set()
        self._ended: set[str] = set()
        self._waiting_since: float | None = None

    def run(self) -> None:
        """Returns once every worker is done.

        Raises:
          UsageError: a pod can never start: its image is not there, say.
          QueueTimeout: a pod found no place in time.
          TrainingEnded: the Job has failed; says which rank, why, and its last error.
          Stopped: somebody has deleted the Job.
        """
        log = ChiefLog(self._cluster, self._say)
        try:
            while not self._is_done(log):
                time.sleep(POLL_SECONDS)
        finally:
            log.close()

    def _is_done(self, log: ChiefLog) -> bool:
        # The Job first: pods that are seen after its end are all that there were.
        job = self._cluster.job(self._plan)
        if job is None:
            raise Stopped(f"Job {self._plan.name} is gone: somebody has deleted it")
        pods = self._cluster.pods(self._plan)
        for pod in pods:
            if look.index_of(pod) == 0 and look.has_started([pod]):
                log.want(pod["metadata"]["name"])
        self._tell_ends(look.ended(pods))
        verdict = look.verdict(job)
        if verdict is None:
            self._check_waiting(pods)
            return False
        kind, reason, message = verdict
        if kind == "Failed":
            self._fail(reason, message, pods)
        return True

    def _check_waiting(self, pods: Sequence[dict[str, Any]]) -> None:
        running = [pod for pod in pods if (pod.get("status") or {}).get("phase") in _AT_WORK]
        missing = self._plan.workers - len(running)
        if missing <= 0:
            self._waiting_since = None
            return
        now = self._clock()
        self._waiting_since = now if self._waiting_since is None else self._waiting_since
        waited = now - self._waiting_since
        waiting = look.waiting(pods)
        if not waiting and waited > _SOON_SECONDS:
            waiting = [self._unexplained(pods)]
        for each in waiting:
            # In the middle of a run a registry that is busy is no reason to give it up.
            if each.hopeless and not look.has_started(pods):
                raise UsageError(f"pod {each}: it can never start; mend that and run again")
            if str(each) not in self._told:
                self._told.add(str(each))
                self._say(f"waiting  pod {each}")
        limit = self._plan.options.queue_timeout_seconds
        if limit and waited > limit:
            why = f": {waiting[0]}" if waiting else ""
            raise QueueTimeout(
                f"no place for {missing} of {self._plan.workers} pods in {limit} s "
                f"(queue_timeout_seconds){why}; nothing is left waiting"
            )

    def _unexplained(self, pods: Sequence[dict[str, Any]]) -> look.Waiting:
        """Returns what the cluster records of a pod that is not made or does not start."""
        pending = [pod for pod in pods if (pod.get("status") or {}).get("phase") == "Pending"]
        name = pending[-1]["metadata"]["name"] if pending else self._plan.name
        said = self._cluster.last_event(name) or "the cluster says nothing of it"
        return look.Waiting(name, "does not start" if pending else "is not made", said, False)

    def _tell_ends(self, ended: Sequence[look.Ended]) -> None:
        new = [end for end in ended if end.uid not in self._ended]
        self._ended.update(end.uid for end in new)
        if new:
            self._say("; ".join(self._fate(end) for end in new))

    def _fate(self, end: look.Ended) -> str:
        if end.disrupted:
            return f"rank {end.index} loses its node; it starts again elsewhere"
        if end.reason == "OOMKilled":
            limit = (self._plan.resources.get("limits") or {}).get("memory", "none of its own")
            return (
                f"rank {end.index} was killed for want of memory (limit: {limit}): raise the "
                "memory of the training task, or train with smaller batches or --microbatches"
            )
        if end.code == _KILLED:
            return f"rank {end.index} was killed: by hand, or its node was short of memory"
        again = " and starts again" if end.code in _RESTARTS else ""
        return f"rank {end.index} left with {end.code}{again}"

    def _fail(self, reason: str, message: str, pods: Sequence[dict[str, Any]]) -> None:
        """Raises what ended the Job: the first pod that had no right to another try."""
        if reason == "DeadlineExceeded":
            raise TrainingEnded(
                EXIT_STOPPED,
                f"Job {self._plan.name} was stopped after "
                f"{self._plan.options.active_deadline_seconds} s (active_deadline_seconds)",
            )
        ends = look.ended(pods)
        guilty = [end for end in ends if end.code not in _RESTARTS and not end.disrupted] or ends
        if not guilty:
            raise TrainingEnded(EXIT_PEER_LOST, f"Job {self._plan.name}: {reason}: {message}")
        # A mistake fails the Job at once, want of memory only when the last try is used up.
        first = guilty[0] if reason == "PodFailurePolicy" else guilty[-1]
        if first.code == _KILLED:  # which is worth another try, unlike what the trainer says itself
            raise TrainingEnded(EXIT_PEER_LOST, self._fate(first))
        said = self._last_error(first)
        raise TrainingEnded(first.code, f"rank {first.index} (pod {first.pod}){said}")

    def _last_error(self, end: look.Ended) -> str:
        lines = [line for line in self._cluster.log(end.pod, tail=_TAIL_LINES) if line.strip()]
        errors = [line for line in lines if line.startswith(_ERROR)]
        last = (errors or lines or [""])[-1].removeprefix(_ERROR)
        return f": {last}" if last else ""
