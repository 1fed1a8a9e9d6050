"""Finds out which cluster this process belongs to; the one place that reads the environment.

In order: explicit flags, TPU, TF_CONFIG, Vertex's CLUSTER_SPEC, a Kubernetes Indexed Job, this
machine. The first that is present decides, the others must agree. When something says that there
are other tasks but nothing says where, the process refuses: N of them would train alone into one
output. `--alone` is the way to say that this is meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace

from trainer.cluster import tf_config
from trainer.cluster.spec import ClusterSpec, Role, short, split_address, whole
from trainer.errors import UsageError

HOSTS = "CASTELL_WORKER_HOSTS"
COMPLETION_INDEX = "JOB_COMPLETION_INDEX"
TPU_VARIABLES = (
    "TPU_WORKER_ID",
    "TPU_WORKER_HOSTNAMES",
    "TPU_ACCELERATOR_TYPE",
    "TPU_NAME",
)
# Each needs a port below those that the kernel gives away, and a process of a gigabyte.
_MOST_WORKERS = 1000
# Launchers that start N equal processes and tell each of them so.
_TASK_COUNTS = {
    "SLURM_STEP_NUM_TASKS": "Slurm",
    "OMPI_COMM_WORLD_SIZE": "mpirun",
    "PMI_SIZE": "mpiexec",
    "AWS_BATCH_JOB_NUM_NODES": "AWS Batch",
}


def resolve(
    environ: Mapping[str, str], *, alone: bool = False, workers: int | None = None
) -> ClusterSpec:
    """Returns this process's cluster.

    alone: ignore every sign of other tasks. workers: how many processes train; if the environment
    names a cluster it must have that many, else this process is to start them (`starts_here`).

    Raises:
      UsageError: the environment is not understood, contradicts itself or the flags, or says that
        there are other tasks without saying where.
    """
    if workers is not None and workers < 1:
        raise UsageError(f"--workers ({workers}) must be at least 1")
    if workers is not None and workers > _MOST_WORKERS:
        raise UsageError(f"--workers ({short(str(workers))}) must be at most {_MOST_WORKERS:,}")
    if alone:
        return _on_this_machine(workers, "--alone", _ignored(environ))
    notes: list[str] = []
    named = _named_cluster(environ, notes)
    if named is not None and named.role == "ps":
        return replace(named, notes=tuple(notes))
    _check_tpu(environ, named)
    if workers is not None:
        spec = _explicit(workers, named)
    elif variable := tpu_variable(environ):
        spec = replace(named or ClusterSpec(), source=f"TPU ({variable})")
    elif named is not None:
        spec = named
    else:
        _refuse_unnamed_peers(environ)
        spec = ClusterSpec()
    return replace(spec, notes=tuple(notes) + spec.notes)


def tpu_variable(environ: Mapping[str, str]) -> str | None:
    """Returns the variable that says that this machine has a TPU, if there is one."""
    return next((name for name in TPU_VARIABLES if environ.get(name)), None)


def without_cluster(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns a copy of `environ` in which no cluster is named any more."""
    named = ("TF_CONFIG", "CLUSTER_SPEC", HOSTS, COMPLETION_INDEX)
    return {name: value for name, value in environ.items() if name not in named}


def _on_this_machine(workers: int | None, source: str, notes: tuple[str, ...] = ()) -> ClusterSpec:
    addresses = ("127.0.0.1:0",) * workers if workers and workers > 1 else ()
    return ClusterSpec(workers=addresses, source=source, notes=notes)


def _ignored(environ: Mapping[str, str]) -> tuple[str, ...]:
    signs = ("TF_CONFIG", "CLUSTER_SPEC", HOSTS, COMPLETION_INDEX, *_TASK_COUNTS, "SM_HOSTS")
    found = [name for name in signs if environ.get(name)]
    return (f"ignored because of --alone: {', '.join(found)}",) if found else ()


def _named_cluster(environ: Mapping[str, str], notes: list[str]) -> ClusterSpec | None:
    """Returns what the first variable says that names a cluster; all that do must agree."""
    found: list[ClusterSpec] = []
    documents = (("TF_CONFIG", tf_config.ROLES), ("CLUSTER_SPEC", tf_config.VERTEX_POOLS))
    for name, roles in documents:
        if name in environ:
            more: list[str] = []
            spec = tf_config.parse(name, environ[name], roles, more)
            notes.extend(note for note in more if note not in notes)
            found += [spec] if spec else []
    indexed = _indexed_job(environ)
    found += [indexed] if indexed else []
    for other in found[1:]:
        _check_agreement(found[0], other)
    return found[0] if found else None


def _check_agreement(first: ClusterSpec, other: ClusterSpec) -> None:
    def place(spec: ClusterSpec) -> str:
        return f"{spec.role} {spec.rank} of {', '.join(spec.workers) or 'no workers'}"

    if place(first) != place(other):
        raise UsageError(
            f"{first.source} and {other.source} contradict each other ({place(first)}; "
            f"{place(other)}): unset the wrong one"
        )


def _indexed_job(environ: Mapping[str, str]) -> ClusterSpec | None:
    """Returns the cluster of a Kubernetes Indexed Job that Castell started; rank 0 is chief."""
    text = environ.get(HOSTS, "").strip()
    if not text:
        return None
    hosts = [host.strip() for host in text.split(",")]
    for host in hosts:
        try:
            split_address(host)
        except ValueError as error:
            raise UsageError(f"{HOSTS}: {error}") from None
    tf_config.check_distinct(HOSTS, hosts)
    index = environ.get(COMPLETION_INDEX, "").strip()
    if not index:
        raise UsageError(
            f"{HOSTS} is set but {COMPLETION_INDEX} is not, which says who this process is: set "
            "both, or pass --alone"
        )
    rank = _count(environ, COMPLETION_INDEX)
    if rank >= len(hosts):
        raise UsageError(
            f"{COMPLETION_INDEX} ({rank}) is outside {HOSTS}, which lists {len(hosts)}"
        )
    role: Role = "worker" if rank else "chief"
    return ClusterSpec(role, rank, tuple(hosts), f"Indexed Job ({HOSTS})")


def _explicit(workers: int, named: ClusterSpec | None) -> ClusterSpec:
    if named is not None and named.world_size == workers:
        return named
    if named is None or (named.world_size == 1 and named.is_chief):
        return _on_this_machine(workers, "--workers")
    raise UsageError(
        f"--workers ({workers}) contradicts {named.source}, which names {named.world_size}: drop "
        "--workers to join them, or add --alone to ignore them"
    )


def _check_tpu(environ: Mapping[str, str], named: ClusterSpec | None) -> None:
    variable = tpu_variable(environ)
    if variable is None:
        return
    hosts = [host for host in environ.get("TPU_WORKER_HOSTNAMES", "").split(",") if host.strip()]
    if len(hosts) > 1:
        raise UsageError(
            f"TPU_WORKER_HOSTNAMES names {len(hosts)} hosts: TensorFlow drives the chips of one "
            "TPU host only, choose a slice with a single host"
        )
    if named is not None and named.role != "evaluator" and named.world_size > 1:
        raise UsageError(
            f"{variable} says TPU, {named.source} names {named.world_size} workers: TensorFlow "
            "drives one TPU host only, train with one worker, or pass --alone"
        )
    kind = environ.get("TPU_ACCELERATOR_TYPE", "")
    match = re.match(r"(?:tpu-?)?v?(\d{1,9})(p?)", kind.strip().lower())
    if match and (int(match[1]), match[2]) > (5, ""):
        raise UsageError(
            f"TPU_ACCELERATOR_TYPE ({short(kind)}): TensorFlow runs on TPU v5e and older only"
        )


def _refuse_unnamed_peers(environ: Mapping[str, str]) -> None:
    counts = [
        (f"{name} ({environ[name]}), set by {launcher},", _count(environ, name))
        for name, launcher in _TASK_COUNTS.items()
        if name in environ
    ]
    counts.append(("SM_HOSTS, set by SageMaker,", _sagemaker_hosts(environ)))
    index = _count(environ, COMPLETION_INDEX)
    counts.append((f"{COMPLETION_INDEX} ({index})", index + 1))
    for sign, count in counts:
        if count > 1:
            raise UsageError(
                f"{sign} says that there are at least {count} tasks, but nothing says where: set "
                f"{HOSTS} (host:port,host:port,…) or TF_CONFIG in each of them, or pass --alone "
                "if each is to train by itself"
            )


def _count(environ: Mapping[str, str], name: str) -> int:
    """Returns the number in a variable, 0 if it is not set; others may be there if it is none."""
    text = environ.get(name, "").strip()
    number = whole(text) if text else 0
    if number is None:
        raise UsageError(
            f"{name} ({short(repr(text))}) must be a whole number from 0 on: mend or unset it, or "
            "pass --alone to train without others"
        )
    return number


def _sagemaker_hosts(environ: Mapping[str, str]) -> int:
    """Returns how many hosts SageMaker lists, 0 if it lists none."""
    text = environ.get("SM_HOSTS", "").strip()
    try:
        hosts = json.loads(text or "[]")
    except (ValueError, RecursionError):
        hosts = None
    if not isinstance(hosts, list):
        raise UsageError(
            f"SM_HOSTS ({short(repr(text))}) must be a JSON list of hosts: mend or unset it, or "
            "pass --alone to train without others"
        )
    return len(hosts)
