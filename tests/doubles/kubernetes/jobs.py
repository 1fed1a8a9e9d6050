"""The Job controller, for Indexed Jobs: which pods there should be, and when a Job is over.

After syncJob and manageJob of kubernetes/kubernetes pkg/controller/job/job_controller.go, 1.31 and
newer, where a Job is Failed or Complete only when the last of its pods is gone, and until then has
FailureTarget or SuccessCriteriaMet. A pod holds a finalizer until it is counted. Not here:
successPolicy, managedBy, ttlSecondsAfterFinished.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable

from tests.doubles.kubernetes import pods
from tests.doubles.kubernetes.backoff import Record
from tests.doubles.kubernetes.policy import judge
from tests.doubles.kubernetes.progress import Look, Memory, ending, past_deadline, written
from tests.doubles.kubernetes.status import Json
from tests.doubles.kubernetes.store import JOBS, PODS, Store, now, random_ending
from tests.doubles.kubernetes.timing import Timing

_SOURCE = "job-controller"
_FAILURES = "batch.kubernetes.io/job-index-failure-count"
_IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"


class JobController:
    def __init__(self, store: Store, timing: Timing) -> None:
        self.store, self.timing = store, timing
        self._memories: dict[str, Memory] = {}

    def look(self) -> None:
        jobs = self.store.list(JOBS)
        living = {job["metadata"]["uid"] for job in jobs}
        self._release(pod for pod in self.store.list(PODS) if pods.owner_of(pod) not in living)
        for job in jobs:
            uid = job["metadata"]["uid"]
            mine = [pod for pod in self.store.list(PODS) if pods.owner_of(pod) == uid]
            self._sync(Look(job, mine, self._memories.setdefault(uid, Memory())))

    def _sync(self, look: Look) -> None:
        job = look.job
        over = any(pods.condition(job, kind) == "True" for kind in ("Complete", "Failed"))
        if pods.is_deleting(job) or over:
            self._release(look.all)
            return
        look.status.setdefault("uncountedTerminatedPods", {})
        if not look.spec["suspend"]:
            look.status.setdefault("startTime", now())
        newly = self._count(look)
        self._decide(look)
        if ending(look):
            newly += self._stop_all(look)
        else:
            self._manage(look)
        look.all = [p for p in self.store.list(PODS) if pods.owner_of(p) == job["metadata"]["uid"]]
        look.status.update(
            active=len(look.active), terminating=len(look.terminating),
            ready=sum(pods.is_ready(pod) for pod in look.active),
        )  # fmt: skip
        self._finish(look)
        # As Go leaves out what is 0.
        zeros = {key for key in ("active", "failed", "succeeded") if not look.status.get(key)}
        status = {key: value for key, value in look.status.items() if key not in zeros}
        meta = job["metadata"]
        self.store.update(
            JOBS, meta["namespace"], meta["name"], lambda thing: thing.update(status=status)
        )
        # After the numbers are kept: a pod that is released can be gone.
        self._release(newly)

    def _count(self, look: Look) -> list[Json]:
        """Puts pods that ended since the last look into the Job's numbers."""
        ended = [
            pod for pod in look.all if pods.is_tracked(pod)
            and (pod["status"]["phase"] == "Succeeded" or look.has_failed(pod))
        ]  # fmt: skip
        succeeded, failed = look.indexes("completedIndexes"), look.indexes("failedIndexes")
        for pod in ended:
            index = pods.index_of(pod)
            record = look.memory.by_index.setdefault(index, Record())
            if pod["status"]["phase"] == "Succeeded":
                succeeded.add(index)
                look.memory.whole = Record()
                continue
            judgement = judge(look.spec.get("podFailurePolicy"), pod)
            if look.per_index is not None and judgement.counts and (
                judgement.action == "FailIndex" or record.counted >= look.per_index
            ):  # fmt: skip
                failed.add(index)
            if judgement.action == "FailJob" and not ending(look):
                self._target(look, "PodFailurePolicy", judgement.message)
            for one in (record, look.memory.whole):
                one.fail(counts=judgement.counts)
            look.status["failed"] = look.status.get("failed", 0) + judgement.counts
        if succeeded:
            look.status.update(succeeded=len(succeeded), completedIndexes=written(succeeded))
        if look.per_index is not None:
            look.status["failedIndexes"] = written(failed)
        return ended

    def _decide(self, look: Look) -> None:
        """Ends the Job if a limit is passed or all is done."""
        if ending(look):
            return
        spec, failed = look.spec, look.indexes("failedIndexes")
        done = look.indexes("completedIndexes")
        limit = spec.get("maxFailedIndexes")
        if look.status.get("failed", 0) > spec["backoffLimit"]:
            self._target(
                look, "BackoffLimitExceeded", "Job has reached the specified backoff limit"
            )
        elif past_deadline(look.job):
            self._target(look, "DeadlineExceeded", "Job was active longer than specified deadline")
        elif limit is not None and len(failed) > limit:
            words = "Job has exceeded the specified maximal number of failed indexes"
            self._target(look, "MaxFailedIndexesExceeded", words)
        elif failed and len(failed) + len(done) >= spec["completions"]:
            self._target(look, "FailedIndexes", "Job has failed indexes")
        elif len(done) >= spec["completions"] and not look.active:
            words = "Reached expected number of succeeded pods"
            pods.set_condition(look.job, "SuccessCriteriaMet", "True", "CompletionsReached", words)

    def _target(self, look: Look, reason: str, message: str) -> None:
        pods.set_condition(look.job, "FailureTarget", "True", reason, message)

    def _stop_all(self, look: Look) -> list[Json]:
        """Deletes what still runs, and counts it as failed where the Job failed."""
        stopped = look.active
        for pod in stopped:
            self._delete(look, pod)
        # Those that were on their way out are counted by the same rule.
        gone = [*stopped, *(p for p in look.terminating if pods.is_tracked(p))]
        if pods.condition(look.job, "FailureTarget") == "True":
            policy = look.spec.get("podFailurePolicy")
            counted = sum(judge(policy, pod).counts for pod in gone)
            look.status["failed"] = look.status.get("failed", 0) + counted
        return gone

    def _finish(self, look: Look) -> None:
        """The last condition, once no pod is on its way out."""
        if not ending(look) or look.terminating or look.active:
            return
        for interim, final in (("FailureTarget", "Failed"), ("SuccessCriteriaMet", "Complete")):
            if pods.condition(look.job, interim) == "True":
                (why,) = (c for c in look.status["conditions"] if c["type"] == interim)
                pods.set_condition(look.job, final, "True", why["reason"], why["message"])
        if pods.condition(look.job, "Complete") == "True":
            look.status["completionTime"] = now()
            self._tell(look, "Normal", "Completed", "Job completed")
        else:
            self._tell(look, "Warning", why["reason"], why["message"])

    def _manage(self, look: Look) -> None:
        """Makes or deletes pods, so that as many run as should."""
        if look.spec["suspend"]:
            self._release(look.active)
            for pod in look.active:
                self._delete(look, pod)
            if pods.condition(look.job, "Suspended") != "True":
                pods.set_condition(look.job, "Suspended", "True", "JobSuspended", "Job suspended")
                self._tell(look, "Normal", "Suspended", "Job suspended")
            return
        if pods.condition(look.job, "Suspended") == "True":
            pods.set_condition(look.job, "Suspended", "False", "JobResumed", "Job resumed")
            look.status["startTime"] = now()
            self._tell(look, "Normal", "Resumed", "Job resumed")
        done = look.indexes("completedIndexes")
        wanted = min(look.spec["completions"] - len(done), look.spec["parallelism"])
        surplus = len(look.active) - wanted
        if surplus > 0:
            for pod in sorted(look.active, key=pods.index_of)[-surplus:]:
                self._release([pod])
                self._delete(look, pod)
            return
        going = look.terminating if look.spec["podReplacementPolicy"] == "Failed" else []
        missing = wanted - len(look.active) - len(going)
        if look.per_index is None and look.memory.whole.remaining(self.timing) > 0:
            return
        taken = (
            done
            | look.indexes("failedIndexes")
            | {pods.index_of(p) for p in [*look.active, *going]}
        )
        free = [index for index in range(look.spec["completions"]) if index not in taken]
        for index in free[: max(0, missing)]:
            record = look.memory.by_index.setdefault(index, Record())
            if look.per_index is None or record.remaining(self.timing) <= 0:
                self._create(look, index, record)

    def _create(self, look: Look, index: int, record: Record) -> None:
        job, name = look.job["metadata"], f"{look.job['metadata']['name']}-{index}"
        pod: Json = copy.deepcopy(look.spec["template"])
        meta = pod.setdefault("metadata", {})
        meta.update(
            name=f"{name}-{random_ending()}", generateName=f"{name}-", finalizers=[pods.TRACKING],
            ownerReferences=[{
                "apiVersion": "batch/v1", "kind": "Job", "name": job["name"], "uid": job["uid"],
                "controller": True, "blockOwnerDeletion": True,
            }],
        )  # fmt: skip
        meta["labels"] = {**(meta.get("labels") or {}), pods.INDEX: str(index)}
        meta["annotations"] = {**(meta.get("annotations") or {}), pods.INDEX: str(index)}
        if look.per_index is not None:
            meta["annotations"][_FAILURES] = str(record.counted)
            if record.ignored:
                meta["annotations"][_IGNORED] = str(record.ignored)
        pod["spec"]["hostname"] = name
        reference = {"fieldRef": {"fieldPath": f"metadata.labels['{pods.INDEX}']"}}
        for container in pod["spec"]["containers"]:
            env = container.get("env") or []
            if "JOB_COMPLETION_INDEX" not in {variable["name"] for variable in env}:
                container["env"] = [*env, {"name": "JOB_COMPLETION_INDEX", "valueFrom": reference}]
        pod["status"] = {"phase": "Pending", "conditions": []}
        self.store.create(PODS, job["namespace"], pod)
        self._tell(look, "Normal", "SuccessfulCreate", f"Created pod: {meta['name']}")

    def _delete(self, look: Look, pod: Json) -> None:
        meta = pod["metadata"]
        if self.store.find(PODS, meta["namespace"], meta["name"]):
            pods.delete_pod(self.store, meta["namespace"], meta["name"])
            self._tell(look, "Normal", "SuccessfulDelete", f"Deleted pod: {meta['name']}")

    def _release(self, some: Iterable[Json]) -> None:
        for pod in some:
            if pods.is_tracked(pod):
                pods.count(self.store, pod)

    def _tell(self, look: Look, level: str, reason: str, message: str) -> None:
        self.store.tell(look.job, level, reason, message, _SOURCE)
