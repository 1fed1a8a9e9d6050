import json
from typing import Any

import pytest

from trainer.cluster.resolve import resolve
from trainer.cluster.spec import ClusterSpec, split_address
from trainer.errors import UsageError

TWO: dict[str, list[str]] = {"chief": ["a:2222"], "worker": ["b:2222"]}


def tf_config(cluster: Any, kind: str, index: Any = 0, **more: Any) -> dict[str, str]:
    task = {"type": kind, "index": index}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task, **more})}


def vertex(cluster: Any, pool: str, index: int = 0) -> dict[str, str]:
    document = {
        "cluster": cluster,
        "environment": "cloud",
        "task": {"type": pool, "index": index, "trial": "3"},
        "job": '{"python_module": "trainer"}',
        "open_ports": [3333],
    }
    return {"CLUSTER_SPEC": json.dumps(document)}


def place(spec: ClusterSpec) -> tuple[str, int, tuple[str, ...]]:
    return spec.role, spec.rank, spec.workers


def refusal(environ: dict[str, str], **flags: Any) -> str:
    with pytest.raises(UsageError) as caught:
        resolve(environ, **flags)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_without_signs_a_process_trains_alone() -> None:
    spec = resolve({})
    assert place(spec) == ("chief", 0, ())
    assert (spec.world_size, spec.source, spec.starts_here) == (1, "this machine", False)
    assert spec.tf_config() == {"cluster": {}, "task": {"type": "chief", "index": 0}}


@pytest.mark.parametrize(
    ("cluster", "kind", "index", "expected"),
    [
        (TWO, "chief", 0, ("chief", 0, ("a:2222", "b:2222"))),
        (TWO, "worker", 0, ("worker", 1, ("a:2222", "b:2222"))),
        ({"master": ["a:1"], "worker": ["b:1"]}, "master", 0, ("chief", 0, ("a:1", "b:1"))),
        ({"worker": ["a:1", "b:1"]}, "worker", 0, ("chief", 0, ("a:1", "b:1"))),
        ({"worker": ["a:1", "b:1"]}, "worker", 1.0, ("worker", 1, ("a:1", "b:1"))),
        ({"chief": ["a:1"]}, "chief", 0, ("chief", 0, ("a:1",))),
        ({**TWO, "ps": ["p:1"]}, "worker", 0, ("worker", 1, ("a:2222", "b:2222"))),
        ({**TWO, "ps": ["p:1"]}, "ps", 0, ("ps", 0, ("a:2222", "b:2222"))),
        ({"worker": {"1": "b:1", "0": "a:1"}}, "worker", 1, ("worker", 1, ("a:1", "b:1"))),
        ({"worker": ["[::1]:1", "[::1]:2"]}, "worker", 1, ("worker", 1, ("[::1]:1", "[::1]:2"))),
    ],
)
def test_tf_config_as_platforms_spell_it(
    cluster: Any, kind: str, index: Any, expected: tuple[str, int, tuple[str, ...]]
) -> None:
    assert place(resolve(tf_config(cluster, kind, index))) == expected


def test_every_task_gets_the_same_canonical_cluster() -> None:
    cluster = {"worker": ["a:1", "b:1", "c:1"], "ps": ["p:1"], "evaluator": ["e:1"]}
    specs = [resolve(tf_config(cluster, "worker", index)) for index in range(3)]
    canonical = [spec.tf_config() for spec in specs]
    assert all(c["cluster"] == {"chief": ["a:1"], "worker": ["b:1", "c:1"]} for c in canonical)
    assert [c["task"] for c in canonical] == [
        {"type": "chief", "index": 0},
        {"type": "worker", "index": 0},
        {"type": "worker", "index": 1},
    ]
    assert resolve({"TF_CONFIG": json.dumps(canonical[2])}).rank == 2
    assert specs[0].notes == (
        "no chief is listed: worker 0 is the chief",
        "parameter servers are not used: 1 left out",
    )


@pytest.mark.parametrize(
    "text", ["", " ", "{}", '{"cluster": {}}', '{"cluster": {"worker": []}, "task": {}}']
)
def test_an_empty_tf_config_means_no_cluster_and_it_is_said(text: str) -> None:
    spec = resolve({"TF_CONFIG": text})
    assert place(spec) == ("chief", 0, ())
    assert spec.notes == ("TF_CONFIG names no cluster",)


def test_an_empty_tf_config_leaves_the_decision_to_cluster_spec() -> None:
    pools = {"workerpool0": ["a:2222"], "workerpool1": ["b:2222"]}
    spec = resolve({"TF_CONFIG": "{}", **vertex(pools, "workerpool1")})
    assert place(spec) == ("worker", 1, ("a:2222", "b:2222"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{chief", "TF_CONFIG is not JSON"),
        ("null", "TF_CONFIG (null)"),
        ("[1]", "TF_CONFIG ([1])"),
        ('{"cluster": null}', "cluster (null)"),
        ('{"cluster": ["a:1"]}', 'cluster (["a:1"])'),
        ('{"cluster": {"worker": ["a:1"]}}', "lacks task"),
        ('{"cluster": {"worker": ["a:1"]}, "task": 3}', "task (3)"),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker"}}', "lacks index"),
        ('{"cluster": {"worker": ["a:1"]}, "task": {"index": 0}}', "lacks type"),
        ('{"cluster": {"worker": null}, "task": {"type": "worker", "index": 0}}', "worker (null)"),
        ('{"cluster": {"workers": ["a:1"]}, "task": {"type": "worker", "index": 0}}', '"workers"'),
        ('{"task": {"type": "worker", "index": 1}}', "no cluster is named"),
    ],
)
def test_a_tf_config_that_cannot_be_meant_is_refused(text: str, words: str) -> None:
    assert words in refusal({"TF_CONFIG": text})


@pytest.mark.parametrize(
    ("cluster", "kind", "index", "words"),
    [
        (TWO, "worker", 1, "task worker 1 is outside the cluster"),
        (TWO, "worker", -1, "task.index (-1)"),
        (TWO, "worker", True, "task.index (true)"),
        (TWO, "worker", 0.5, "task.index (0.5)"),
        (TWO, "worker", None, "task.index (null)"),
        (TWO, "boss", 0, '"boss"'),
        ({"worker": ["a:1"]}, "chief", 0, "outside the cluster"),
        ({**TWO, "evaluator": ["e:1"]}, "evaluator", 1, "outside the cluster"),
        ({"chief": ["a:1", "b:1"]}, "chief", 0, "2 chiefs"),
        ({"chief": ["a:1"], "master": ["b:1"]}, "chief", 0, "twice"),
        ({"worker": ["a:1", "a:1"]}, "worker", 0, "a:1 is listed twice"),
        ({"worker": ["a"]}, "worker", 0, "expected host:port, got 'a'"),
        ({"worker": ["a:0"]}, "worker", 0, "expected host:port"),
        ({"worker": {"1": "b:1"}}, "worker", 1, "lists only 1"),
    ],
)
def test_a_task_that_does_not_fit_its_cluster_is_refused(
    cluster: Any, kind: str, index: Any, words: str
) -> None:
    assert words in refusal(tf_config(cluster, kind, index))


def test_sparse_clusters_of_dynamic_workers_are_refused() -> None:
    document = {"sparseCluster": {"worker": {"0": "a:1"}}, "task": {"type": "worker", "index": 0}}
    environ = {"TF_CONFIG": json.dumps(document)}
    assert "sparseCluster" in refusal(environ)
    assert place(resolve(environ, alone=True)) == ("chief", 0, ())


@pytest.mark.parametrize(
    ("pool", "index", "expected"),
    [
        ("workerpool0", 0, ("chief", 0)),
        ("workerpool1", 1, ("worker", 2)),
        ("workerpool2", 0, ("ps", 0)),
        ("workerpool3", 0, ("evaluator", 0)),
    ],
)
def test_vertex_pools_become_roles(pool: str, index: int, expected: tuple[str, int]) -> None:
    pools = {
        "workerpool0": ["a:2222"],
        "workerpool1": ["b:2222", "c:2222"],
        "workerpool2": ["r:2222"],
        "workerpool3": ["e:2222"],
    }
    spec = resolve(vertex(pools, pool, index))
    assert place(spec) == (*expected, ("a:2222", "b:2222", "c:2222"))
    assert spec.source == "CLUSTER_SPEC"


def test_vertex_sets_both_variables_and_they_agree() -> None:
    pools = {"workerpool0": ["a:2222"], "workerpool1": ["b:2222"], "workerpool3": ["e:2222"]}
    both = {**tf_config(TWO, "worker"), **vertex(pools, "workerpool1")}
    assert place(resolve(both)) == ("worker", 1, ("a:2222", "b:2222"))
    evaluator = {**tf_config(TWO, "evaluator"), **vertex(pools, "workerpool3")}
    assert place(resolve(evaluator)) == ("evaluator", 0, ("a:2222", "b:2222"))


def test_variables_that_contradict_each_other_are_refused() -> None:
    pools = {"workerpool0": ["a:2222"], "workerpool1": ["x:2222"]}
    message = refusal({**tf_config(TWO, "worker"), **vertex(pools, "workerpool1")})
    assert "TF_CONFIG" in message
    assert "CLUSTER_SPEC" in message
    indexed = {"JOB_COMPLETION_INDEX": "0", "CASTELL_WORKER_HOSTS": "a:2222,b:2222"}
    assert "contradict" in refusal({**tf_config(TWO, "worker"), **indexed})
    assert resolve({**tf_config(TWO, "chief"), **indexed}).source == "TF_CONFIG"


def test_an_indexed_job_names_its_workers() -> None:
    hosts = {"CASTELL_WORKER_HOSTS": "t-0.t:2222, t-1.t:2222"}
    spec = resolve({**hosts, "JOB_COMPLETION_INDEX": "1"})
    assert place(spec) == ("worker", 1, ("t-0.t:2222", "t-1.t:2222"))
    assert resolve({**hosts, "JOB_COMPLETION_INDEX": "0"}).is_chief
    assert "JOB_COMPLETION_INDEX" in refusal(hosts)
    assert "('x')" in refusal({**hosts, "JOB_COMPLETION_INDEX": "x"})
    assert "lists 2" in refusal({**hosts, "JOB_COMPLETION_INDEX": "2"})
    assert "'t-0'" in refusal({"CASTELL_WORKER_HOSTS": "t-0", "JOB_COMPLETION_INDEX": "0"})


@pytest.mark.parametrize(
    "environ",
    [
        {"JOB_COMPLETION_INDEX": "1"},
        {"SLURM_STEP_NUM_TASKS": "2"},
        {"OMPI_COMM_WORLD_SIZE": "4"},
        {"SM_HOSTS": '["algo-1", "algo-2"]'},
        {"TF_CONFIG": "{}", "SLURM_STEP_NUM_TASKS": "2"},
    ],
)
def test_signs_of_others_without_addresses_are_refused_unless_told(environ: dict[str, str]) -> None:
    assert "--alone" in refusal(environ)
    assert resolve(environ, alone=True).world_size == 1
    assert resolve(environ, workers=2).starts_here


@pytest.mark.parametrize(
    "environ",
    [{"JOB_COMPLETION_INDEX": "0"}, {"SLURM_STEP_NUM_TASKS": "1"}, {"SM_HOSTS": '["algo-1"]'}],
)
def test_signs_of_a_single_task_are_no_obstacle(environ: dict[str, str]) -> None:
    assert place(resolve(environ)) == ("chief", 0, ())


MANY = "9" * 5000


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("JOB_COMPLETION_INDEX", "x"),
        ("JOB_COMPLETION_INDEX", "-1"),
        ("JOB_COMPLETION_INDEX", MANY),
        ("SLURM_STEP_NUM_TASKS", "two"),
        ("SLURM_STEP_NUM_TASKS", MANY),
        ("PMI_SIZE", "-2"),
        ("SM_HOSTS", "["),
        ("SM_HOSTS", "{}"),
        ("SM_HOSTS", "[" * 100_000),
    ],
)
def test_a_sign_of_others_that_is_not_understood_is_no_leave_to_train_alone(
    variable: str, value: str
) -> None:
    message = refusal({variable: value})
    assert message.startswith(f"{variable} (")
    assert "--alone" in message
    assert len(message) < 250
    assert resolve({variable: value}, alone=True).world_size == 1
    assert resolve({variable: ""}).world_size == 1


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"CASTELL_WORKER_HOSTS": "a:1,b:1", "JOB_COMPLETION_INDEX": MANY}, "JOB_COMPLETION_INDEX"),
        ({"TPU_ACCELERATOR_TYPE": f"v{MANY}-8"}, "TPU_ACCELERATOR_TYPE"),
        (tf_config(TWO, "worker", MANY), "task.index"),
        (tf_config(TWO, "worker", 10**4000), "task.index"),
        ({"TF_CONFIG": '{"cluster": ' + "[" * 900 + "]" * 900 + "}"}, "TF_CONFIG"),
    ],
)
def test_endless_values_are_refused_in_one_short_line(environ: dict[str, str], words: str) -> None:
    message = refusal(environ)
    assert words in message
    assert len(message) < 250


def test_workers_starts_a_local_cluster_or_must_agree() -> None:
    spec = resolve({}, workers=3)
    assert (spec.world_size, spec.starts_here, spec.source) == (3, True, "--workers")
    assert resolve({}, workers=1).world_size == 1
    assert resolve(tf_config({"chief": ["a:1"]}, "chief"), workers=2).starts_here
    assert not resolve(tf_config(TWO, "worker"), workers=2).starts_here
    assert "--workers (0)" in refusal({}, workers=0)
    assert "at most" in refusal({}, workers=10**22)


def test_alone_ignores_everything_and_says_what() -> None:
    spec = resolve({"TF_CONFIG": "{broken", "SLURM_STEP_NUM_TASKS": "9"}, alone=True)
    assert place(spec) == ("chief", 0, ())
    assert spec.notes == ("ignored because of --alone: TF_CONFIG, SLURM_STEP_NUM_TASKS",)


def test_a_tpu_host_trains_by_itself() -> None:
    spec = resolve({"TPU_WORKER_ID": "0", "TPU_ACCELERATOR_TYPE": "v5litepod-8"})
    assert (spec.source, spec.world_size) == ("TPU (TPU_WORKER_ID)", 1)
    assert "names 2 hosts" in refusal({"TPU_WORKER_HOSTNAMES": "10.0.0.1,10.0.0.2"})
    assert "names 2 workers" in refusal({"TPU_WORKER_ID": "0", **tf_config(TWO, "chief")})
    assert "v6e-8" in refusal({"TPU_ACCELERATOR_TYPE": "v6e-8"})


def test_addresses_split_into_host_and_port() -> None:
    assert split_address("[fe80::1]:22") == ("fe80::1", 22)
    assert split_address("a.b-c:65535") == ("a.b-c", 65535)
    for wrong in ("a:65536", "a", ":1", "a:b", "http://a:1", "::1:2"):
        with pytest.raises(ValueError, match="expected host:port"):
            split_address(wrong)
