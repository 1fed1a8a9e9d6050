"""Runs on KFP: what its own client sends to an API server, and what is made of the answers."""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from tests.doubles.kfp import Kfp, new_id, task
from tests.doubles.server import Asked, Refused
from tests.pipelines import golden, ir
from tests.pipelines.submit.calls import PARAMETERS, castell, submit

FAILED = "castell: error: training ended with exit code 3: diverged: lower learning_rate"


def test_a_run_is_what_was_asked_for(kfp: Kfp, capsys: pytest.CaptureFixture[str]) -> None:
    assert submit("kfp", "--name", "flights", "--service-account", "runner") == 0
    (asked,) = kfp.sent("POST", "/runs")
    spec = asked.body["pipeline_spec"]
    image = os.environ["CASTELL_IMAGE"]
    assert spec.get("pipeline_spec", spec) == ir.document("train_evaluate_export", "kfp", image)
    golden.check("kfp_run", {**asked.body, "pipeline_spec": "the compiled pipeline"})
    assert capsys.readouterr().out.splitlines() == [
        f"run {new_id(100)}",
        f"{kfp.address}/#/runs/details/{new_id(100)}",
    ]


def test_an_experiment_is_made_once(kfp: Kfp) -> None:
    assert submit("kfp", "--experiment", "flights") == 0
    assert submit("kfp", "--experiment", "flights") == 0
    assert [e["display_name"] for e in kfp.experiments] == ["flights"]
    assert len(kfp.runs) == 2


def test_a_schedule_is_a_recurring_run(kfp: Kfp, capsys: pytest.CaptureFixture[str]) -> None:
    assert submit("kfp", "--cron", "30 2 * * *", "--name", "nightly") == 0
    (asked,) = kfp.sent("POST", "/recurringruns")
    golden.check("kfp_recurring_run", {**asked.body, "pipeline_spec": "the compiled pipeline"})
    out = capsys.readouterr().out
    assert f"schedule {new_id(200)}" in out
    assert castell("cancel", new_id(200), "--schedule") == 0
    assert not kfp.recurring
    for cron, says in (("daily", "must be 5 fields"), ("TZ=Asia/Tokyo 1 2 * * *", "no time zone")):
        assert submit("kfp", "--cron", cron) == 2
        assert says in capsys.readouterr().err


def test_without_cache_no_task_takes_earlier_outputs(kfp: Kfp) -> None:
    """The client forgets the tasks inside conditions."""
    assert submit("kfp", "--no-cache") == 0
    (asked,) = kfp.sent("POST", "/runs")
    assert '"enableCache"' not in json.dumps(asked.body)


@pytest.mark.parametrize(
    ("params", "says"),
    [
        (("label=late",), "sources missing"),
        ((*PARAMETERS, "lable=x"), "no parameter 'lable', did you mean 'label'?"),
        ((*PARAMETERS, "workers=two"), "parameter workers (two): must be a whole number"),
        ((*PARAMETERS, "drop={a: 1}", "types=[a]"), "parameter types ([a]): must be a mapping"),
        ((*PARAMETERS, "thresholds=auc is good"), "'auc is good' is not a rule"),
    ],
)
def test_a_wrong_parameter_is_refused_before_any_request(
    kfp: Kfp, params: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert submit("kfp", params=params) == 2
    out, err = capsys.readouterr()
    assert says in err
    assert err.count("\n") == 1
    assert not out
    assert not kfp.asked


def test_waiting_follows_the_steps_to_the_end(kfp: Kfp, capsys: pytest.CaptureFixture[str]) -> None:
    sharded = task("shard-data", "SUCCEEDED")
    kfp.script = [
        {"state": "PENDING"},
        {"state": "RUNNING", "tasks": [task("shard-data", "RUNNING"), task("root", "RUNNING")]},
        {"state": "RUNNING", "tasks": [sharded, task("train-model", "RUNNING", 2)]},
        {"state": "SUCCEEDED", "tasks": [sharded, task("train-model", "SUCCEEDED", 2)]},
    ]
    assert submit("kfp", "--wait", "--poll-seconds", "0.01") == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        "▸ shard-data: running",
        "▸ shard-data: succeeded",
        "▸ train-model: running",
        "▸ train-model: succeeded",
        f"run {new_id(100)} succeeded",
    ]


def test_a_failed_step_ends_the_wait_with_its_error_and_exit_code(
    kfp: Kfp, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = task("train-model", "FAILED", 2, error=FAILED)
    kfp.script = [{"state": "FAILED", "error": "a step failed", "tasks": [failed]}]
    assert submit("kfp", "--wait", "--poll-seconds", "0.01") == 3
    err = capsys.readouterr().err
    assert err.startswith(
        "castell: error: step train-model failed: training ended with exit code 3"
    )
    assert err.count("\n") == 1


def test_a_server_that_is_away_for_a_moment_is_waited_for(
    kfp: Kfp, capsys: pytest.CaptureFixture[str]
) -> None:
    answers, away = kfp.get_run, iter([True] * 3)

    def get_run(asked: Asked, run_id: str) -> Any:
        if next(away, False):
            raise Refused(503, "upgrading")
        return answers(asked, run_id)

    kfp.routes = [
        (m, p, get_run if "/runs/([^/:]+)" in p and m == "GET" else a) for m, p, a in kfp.routes
    ]
    kfp.script = [{"state": "SUCCEEDED"}]
    assert submit("kfp", "--wait", "--poll-seconds", "0.01") == 0
    away = iter([True] * 100)
    capsys.readouterr()
    assert castell("status", new_id(100), "--wait", "--poll-seconds", "0.01") == 2
    assert "(503): " in capsys.readouterr().err


def test_a_cancelled_run_is_no_success(kfp: Kfp, capsys: pytest.CaptureFixture[str]) -> None:
    kfp.script = [{"state": "CANCELED"}]
    assert submit("kfp", "--wait", "--poll-seconds", "0.01") == 1
    assert "cancelled" in capsys.readouterr().err


def test_status_cancel_and_logs_of_a_run(kfp: Kfp, capsys: pytest.CaptureFixture[str]) -> None:
    submit("kfp", "--name", "flights")
    run = new_id(100)
    kfp.logs = {"pod-1": "reading\nwriting\n"}
    kfp.script = [{"state": "RUNNING", "tasks": [task("shard-data", "RUNNING", pod="pod-1")]}]
    capsys.readouterr()
    assert castell("status", run) == 0
    assert capsys.readouterr().out.splitlines()[0] == "flights: running"
    assert castell("status", run, "--json") == 0
    assert json.loads(capsys.readouterr().out)["tasks"][0]["state"] == "running"
    assert castell("logs", run) == 0
    assert capsys.readouterr().out == "▸ shard-data\n    reading\n    writing\n"
    assert castell("logs", run, "--step", "shard-dat") == 2
    assert "did you mean 'shard-data'?" in capsys.readouterr().err
    assert castell("cancel", run) == 0
    assert castell("status", run) == 0
    assert "flights: cancelled" in capsys.readouterr().out


def test_trouble_with_the_server_is_one_line(kfp: Kfp, capsys: pytest.CaptureFixture[str]) -> None:
    assert castell("status", new_id(7)) == 2
    assert "knows no such run" in capsys.readouterr().err
    assert submit("kfp", "--host", "http://127.0.0.1:9") == 2
    assert "KFP at http://127.0.0.1:9 cannot be reached" in capsys.readouterr().err
    assert submit("kfp", "--host", "somewhere") == 2
    assert "host (somewhere): must be the address" in capsys.readouterr().err


def test_what_is_shown_is_what_is_sent(kfp: Kfp, capsys: pytest.CaptureFixture[str]) -> None:
    assert submit("kfp", "--name", "flights", "--show") == 0
    assert not kfp.asked
    shown = json.loads(capsys.readouterr().out)
    assert submit("kfp", "--name", "flights") == 0
    (asked,) = kfp.sent("POST", "/runs")
    assert (shown["method"], shown["url"]) == (asked.method, kfp.address + asked.path)
    for body in (shown["body"], asked.body):
        body.pop("experiment_id")  # known to the server alone
    assert shown["body"] == asked.body


@pytest.mark.timeout(90)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stop_leaves_the_run_and_says_how_to_end_it(
    kfp: Kfp, number: signal.Signals, code: int
) -> None:
    command = [
        "submit",
        "train_evaluate_export",
        "--target",
        "kfp",
        "--wait",
        "--poll-seconds",
        "0.1",
    ]
    flags = [word for param in PARAMETERS for word in ("--param", param)]
    # A shell that runs the tests in the background lets them ignore Ctrl-C.
    main = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    main += "from pipelines.cli import main; sys.exit(main())"
    running = subprocess.Popen(
        [sys.executable, "-c", main, *command, *flags],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not any(kfp.looks.values()):
        assert running.poll() is None
        time.sleep(0.1)
    running.send_signal(number)
    _, err = running.communicate(timeout=60)
    assert running.returncode == code
    assert f"castell cancel {new_id(100)} --target kfp" in err
    assert "Traceback" not in err
    assert not kfp.sent("POST", ":terminate")


def test_every_step_s_image_is_the_one_asked_for(kfp: Kfp) -> None:
    submit("kfp")
    (asked,) = kfp.sent("POST", "/runs")
    spec = asked.body["pipeline_spec"]
    executors = spec.get("pipeline_spec", spec)["deploymentSpec"]["executors"]
    assert len(executors) == 5
    assert {e["container"]["image"] for e in executors.values()} == {os.environ["CASTELL_IMAGE"]}


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--cron", ""), "--cron '': must be 5 fields"),
        (("--cron", "99 99 99 99 99"), "minute (99): must be"),
        (("--wait", "--poll-seconds", "-1"), "--poll-seconds (-1): must be 0 to"),
        (("--wait", "--poll-seconds", "nan"), "--poll-seconds (nan): must be 0 to"),
        (("--token", "SECRET\nX"), "token: holds a space, a line break"),
        (("--token", "SECRETé€"), "token: holds a space, a line break"),
    ],
)
def test_a_wrong_flag_is_refused_before_any_request(
    kfp: Kfp, more: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert submit("kfp", *more) == 2
    out, err = capsys.readouterr()
    assert says in err
    assert "SECRET" not in out + err
    assert err.count("\n") == 1
    assert not kfp.asked


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("page", ["<html>log in</html>", "null", "", [], {}])
def test_a_login_page_is_no_answer(
    kfp: Kfp, page: object, late: bool, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    answers = kfp.handle

    def handle(asked: Asked) -> tuple[int, dict[str, str], Any]:
        return answers(asked) if asked.path.endswith("healthz") and late else (200, {}, page)

    monkeypatch.setattr(kfp, "handle", handle)
    for code in (submit("kfp"), castell("status", new_id(1))):
        assert code == 2
    out, err = capsys.readouterr()
    assert err.count(f"host ({kfp.address}): answers, but not as the KFP API does") == 2
    assert not out
    assert err.count("\n") == 2


def test_a_login_page_ends_the_wait(
    kfp: Kfp, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = kfp.handle

    def handle(asked: Asked) -> tuple[int, dict[str, str], Any]:
        is_look = asked.method == "GET" and "/runs/" in asked.path
        return (200, {}, "<html>") if is_look else answers(asked)

    monkeypatch.setattr(kfp, "handle", handle)
    assert submit("kfp", "--wait", "--poll-seconds", "0.1") == 2
    assert "not as the KFP API does" in capsys.readouterr().err


@pytest.mark.parametrize(("status", "asks"), [(401, 1), (403, 1), (404, 1), (503, 3)])
def test_a_refusal_on_connecting_keeps_its_status(
    kfp: Kfp, status: int, asks: int, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr(kfp, "handle", lambda asked: (status, {}, "no " * 1000))
    assert submit("kfp") == 2
    err = capsys.readouterr().err
    assert f"refused it ({status}): no no" in err
    assert ("look at the token" in err) == (status in (401, 403))
    assert len(err) < 600
    assert len(kfp.asked) == asks
