"""What Kubernetes says of pods and Jobs, read as a person would."""

from __future__ import annotations

from typing import Any

import pytest

from components.train_model.kubernetes import look


def pod(phase: str, index: int = 0, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"job-{index}-abcde", "uid": f"uid-{index}",
            "annotations": {look.INDEX: str(index)},
        },
        "status": {"phase": phase, **status},
    }  # fmt: skip


def ended(code: int, reason: str = "Error", at: str = "1", index: int = 0) -> dict[str, Any]:
    terminated = {"exitCode": code, "reason": reason, "finishedAt": at}
    return pod("Failed", index, containerStatuses=[{"state": {"terminated": terminated}}])


@pytest.mark.parametrize(
    ("status", "line", "hopeless"),
    [
        (
            {"conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/3 nodes are available:\n 3 Insufficient cpu.",
            }]},
            "job-0-abcde: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.", False,
        ),
        (
            {"containerStatuses": [{"image": "x:1", "state": {"waiting": {
                "reason": "ImagePullBackOff", "message": "Back-off pulling image",
            }}}]},
            "job-0-abcde: ImagePullBackOff: x:1: Back-off pulling image", True,
        ),
        (
            {"containerStatuses": [{"image": "x:1", "state": {"waiting": {
                "reason": "ErrImagePull", "message": "not found",
            }}}]},
            "job-0-abcde: ErrImagePull: x:1: not found", False,
        ),
        (
            {"containerStatuses": [{"image": "x:1", "state": {"waiting": {
                "reason": "CreateContainerConfigError", "message": 'secret "s" not found',
            }}}]},
            'job-0-abcde: CreateContainerConfigError: secret "s" not found', True,
        ),
    ],
)  # fmt: skip
def test_a_pod_that_waits_says_for_what(status: Any, line: str, hopeless: bool) -> None:
    (found,) = look.waiting([pod("Pending", **status), pod("Running", 1)])
    assert (str(found), found.hopeless) == (line, hopeless)


def test_a_pod_that_is_being_made_waits_for_nothing() -> None:
    state = {"state": {"waiting": {"reason": "ContainerCreating"}}}
    assert look.waiting([pod("Pending", containerStatuses=[state])]) == []
    assert not look.has_started([pod("Pending")])
    assert look.has_started([pod("Pending"), pod("Running", 1)])


def test_ends_come_in_their_order_with_what_was_the_matter() -> None:
    lost = ended(143, at="2", index=2)
    lost["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True"}]
    found = look.ended([pod("Running"), ended(138, at="3"), lost, ended(137, "OOMKilled", "1", 1)])
    assert [(e.index, e.code, e.reason, e.disrupted) for e in found] == [
        (1, 137, "OOMKilled", False), (2, 143, "Error", True), (0, 138, "Error", False),
    ]  # fmt: skip


def test_a_pod_that_loses_its_node_counts_before_it_is_gone() -> None:
    (found,) = look.ended(
        [pod("Running", conditions=[{"type": "DisruptionTarget", "status": "True"}])]
    )
    assert found.disrupted


def test_a_pod_without_a_container_has_ended_too() -> None:
    (found,) = look.ended([pod("Failed", reason="Evicted")])
    assert (found.code, found.reason) == (1, "Evicted")


def test_the_verdict_is_the_condition_that_holds() -> None:
    def job(*conditions: Any) -> dict[str, Any]:
        return {"status": {"conditions": list(conditions)}}

    failed = {"type": "Failed", "status": "True", "reason": "PodFailurePolicy", "message": "m"}
    assert look.verdict({}) is None
    assert look.verdict(job({"type": "FailureTarget", "status": "True"})) is None
    assert look.verdict(job(failed)) == ("Failed", "PodFailurePolicy", "m")
    assert look.verdict(job({"type": "Complete", "status": "True"})) == ("Complete", "", "")
