import dataclasses
import socket
import time
from collections.abc import Iterator

import pytest

from tests.trainer.cluster.meetings import Start, cluster, members, outcomes, until
from trainer.cluster.messages import Greeting, Verdict, read_greeting, read_verdict
from trainer.cluster.preflight import meet
from trainer.cluster.spec import ClusterSpec, split_address
from trainer.errors import PeerLost, Stopped, UsageError


@pytest.fixture
def start() -> Iterator[Start]:
    with members() as starter:
        yield starter


def test_everybody_meets_in_any_order_and_the_ports_are_free_again(start: Start) -> None:
    specs = cluster(4)
    for order in ((0, 1, 2, 3), (3, 2, 1, 0)):
        started = [start(specs[rank]) for rank in order]
        assert outcomes(started) == [(0, "")] * 4
        for spec in specs:
            with socket.socket() as server:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                server.bind(split_address(spec.workers[spec.rank]))
                server.listen()


def test_one_process_has_nobody_to_meet() -> None:
    for spec in (ClusterSpec(), ClusterSpec(workers=("nowhere:1",)), ClusterSpec("evaluator")):
        meet(spec, fingerprint="f", deadline_seconds=0.1)


def test_who_does_not_come_is_named_to_all(start: Start) -> None:
    specs = cluster(3)
    began = time.monotonic()
    present = start(specs[1], deadline_seconds=20)
    chief = start(specs[0], deadline_seconds=1.5)
    for code, message in outcomes([chief, present]):
        assert code == PeerLost.exit_code
        assert f"rank 2 ({specs[2].workers[2]}) did not come within 1.5 s" in message
    assert time.monotonic() - began < 8


def test_who_came_before_the_chief_still_learns_who_is_missing(start: Start) -> None:
    specs = cluster(3)
    early = start(specs[1], deadline_seconds=2)
    time.sleep(0.2)
    start(specs[0], deadline_seconds=2)
    code, message = early.outcome(timeout=4)
    assert code == PeerLost.exit_code
    assert f"rank 2 ({specs[2].workers[2]}) did not come within 2 s" in message


def test_a_chief_that_does_not_come_is_named() -> None:
    spec = cluster(2)[1]
    with pytest.raises(PeerLost, match=r"chief \(127.0.0.1:\d+\) did not answer within 1 s"):
        meet(spec, fingerprint="f", deadline_seconds=1)


def test_an_index_given_twice_ends_all_and_names_both(start: Start) -> None:
    specs = cluster(3)
    started = [start(specs[0]), start(specs[1]), start(specs[1])]
    found = outcomes(started)
    assert {code for code, _ in found} == {UsageError.exit_code}
    message = found[0][1]
    assert message.startswith("rank 1 was given to two processes")
    for member in started[1:]:
        assert f"process {member.process.pid}" in message
    assert {said for _, said in found} == {message}


def test_two_chiefs_on_one_machine_both_learn_it(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.cluster.ports.PORT_PATIENCE_SECONDS", 1.0)
    specs = cluster(2)
    found = outcomes([start(specs[0]), start(specs[0])])
    assert all(code == UsageError.exit_code for code, _ in found)
    assert all("rank 0 was given to two processes" in message for _, message in found)


def test_different_clusters_end_all(start: Start) -> None:
    two = cluster(2)
    three = cluster(3, (*two[0].workers, "127.0.0.1:9"))
    for code, message in outcomes([start(two[0]), start(three[1])]):
        assert code == UsageError.exit_code
        assert "was told of 3 workers, the chief" in message
    straight = cluster(3)
    a, b, c = straight[0].workers
    crossed = cluster(3, (a, c, b))
    for code, message in outcomes([start(straight[0]), start(crossed[1])]):
        assert code == UsageError.exit_code
        assert "give all the same cluster" in message


def test_different_configurations_end_all_including_who_comes_late(start: Start) -> None:
    specs = cluster(3)
    first = [start(specs[0]), start(specs[1], fingerprint="other")]
    time.sleep(1)
    found = outcomes([*first, start(specs[2])])
    for code, message in found:
        assert code == UsageError.exit_code
        assert f"rank 1 ({specs[1].workers[1]}) runs another configuration" in message
        assert "(other and f)" in message


def test_a_port_held_by_another_program_is_said(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.cluster.ports.PORT_PATIENCE_SECONDS", 0.5)
    for rank in (0, 1):
        specs = cluster(2)
        with socket.create_server(("", split_address(specs[0].workers[rank])[1])):
            asked = specs if rank else specs[:1]
            for code, message in outcomes([start(spec) for spec in asked]):
                assert code == UsageError.exit_code
                assert "cannot listen on its port" in message


def test_strangers_are_ignored(start: Start) -> None:
    specs = cluster(2)
    chief = start(specs[0])
    address = split_address(specs[0].workers[0])
    words = (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00", b"[]\n", b'{"castell": "greeting"}\n')
    strangers = []
    for word in (*words, b""):
        until(lambda: socket.socket().connect_ex(address) == 0)
        strangers.append(socket.create_connection(address))
        strangers[-1].sendall(word)
    assert outcomes([start(specs[1]), chief]) == [(0, "")] * 2
    for stranger in strangers:
        stranger.close()


def test_a_worker_that_is_killed_and_restarted_is_no_second_one(start: Start) -> None:
    specs = cluster(3)
    chief, first = start(specs[0]), start(specs[1])
    time.sleep(1)
    first.process.kill()
    first.process.join()
    assert outcomes([start(specs[1]), start(specs[2]), chief]) == [(0, "")] * 3


def test_a_killed_chief_is_waited_for_until_it_is_back(start: Start) -> None:
    specs = cluster(3)
    others = [start(specs[1], deadline_seconds=20)]
    chief = start(specs[0])
    time.sleep(1)
    chief.process.kill()
    chief.process.join()
    others.append(start(specs[2], deadline_seconds=20))
    assert outcomes([start(specs[0]), *others]) == [(0, "")] * 3


def test_a_wish_to_stop_ends_the_wait() -> None:
    began = time.monotonic()
    for spec in cluster(2):
        with pytest.raises(Stopped):
            meet(
                spec,
                fingerprint="f",
                deadline_seconds=30,
                stop=lambda: time.monotonic() - began > 0.5,
            )
    assert time.monotonic() - began < 5


def test_lines_survive_the_way_and_garbage_does_not() -> None:
    greeting = Greeting(1, ("a:1", "b:1"), "f", "host", "token")
    assert read_greeting(greeting.line()) == greeting
    assert read_verdict(Verdict(2, "why").line()) == Verdict(2, "why")
    stranger = dataclasses.asdict(greeting)
    for garbage in (b"", b"\xff\xfe", b"{}", str(stranger).encode(), Verdict().line()):
        assert read_greeting(garbage) is None
    assert read_verdict(greeting.line()) is None
