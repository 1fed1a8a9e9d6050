"""Every setting of a training run: its default, its unit and the reason for both.

Grouped as `--help` shows them; a rule about several keys of a group stands in the group.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from trainer.config.truth import without_truth_values

# Keys that may differ between a run and its resumption: they change where or how long it runs,
# what it prints and keeps, but not which weights come out at a given step. (More steps also move
# the end of a cosine schedule, as whoever extends a run wants.)
RESUMABLE_KEYS = frozenset(
    {
        "data", "output", "cache", "cache_gigabytes", "steps", "epochs", "steps_per_call", "jit",
        "checkpoint_every", "keep_checkpoints", "async_checkpoints", "keep_best", "log_every",
        "eval_every", "eval_split", "eval_batch", "best_metric", "best_mode", "early_stop_evals",
        "early_stop_delta", "actions", "profile", "strategy", "cpu_replicas",
        "startup_deadline_seconds", "heartbeat_timeout_seconds", "collective_timeout_seconds",
        "lifeline_port",
    }
)  # fmt: skip

_INT32 = 2**31 - 1
# Steps are counted in int32 on the device.
MOST_STEPS = _INT32
_LONGEST_SECONDS = 1e6
# A loss of 1 times it is still a float32.
_LARGEST_SCALE = 1e38
# An exabyte: more than any disk, and still a number of bytes.
_MOST_GIGABYTES = 1e9


def _listed(value: Any) -> Any:
    """Reads "a,b" as a flag gives it; YAML brings a list."""
    if isinstance(value, str):
        if value[:1] + value[-1:] in ("[]", "()"):  # but not the end of a pattern, embed_[01]
            value = value[1:-1]
        return [part.strip() for part in value.split(",") if part.strip()]
    return [value] if isinstance(value, int | float) else value


def _mapped(value: Any) -> Any:
    """Reads "yes=2,no=1" as a flag gives it; YAML brings a mapping, whose keys may be numbers."""
    if isinstance(value, dict):
        return {str(key): weight for key, weight in value.items()}
    if not isinstance(value, str) or value == "balanced":
        return value
    pairs = [part.rpartition("=") for part in value.split(",")]
    if not all(equals for _, equals, _ in pairs):
        raise ValueError("give each class its weight, as no=1,yes=5, or take balanced")
    names = [key.strip() for key, _, _ in pairs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{twice[0]!r} stands there twice: give each class one weight")
    return dict(zip(names, (weight for *_, weight in pairs), strict=True))


Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]
Steps = Annotated[int, Field(gt=0, le=MOST_STEPS)]


class _Keys(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Model(_Keys):
    """What is learned."""

    task: str = Field(
        "tabular", description="tabular, image, text, or your own as pkg.module:Class"
    )
    options: dict[str, Any] = Field(
        default_factory=dict, description="the Task's own keys; flags and top-level keys work too"
    )


class Data(_Keys):
    """What is read, and what a row counts."""

    data: str = Field(
        "", description="dataset directory made by `castell shard` (path or URL); or TFRecords"
    )
    schema_file: str | None = Field(
        None, description="of foreign TFRecords: their schema.pbtxt; --data is then a glob"
    )
    label: str | None = Field(None, description="of foreign TFRecords: the label's feature")
    global_batch: int = Field(256, gt=0, le=_INT32, description="rows a step, over all replicas")
    lanes: int | None = Field(
        None, gt=0, description="streams the rows are dealt to; default: as many as shards allow"
    )
    # Eight blocks of 1,024 rows: well mixed (the shards are shuffled already), 1 MB a lane.
    window_rows: int = Field(
        8192, gt=0, le=_INT32, description="rows of a lane that are permuted together"
    )
    weight_column: str | None = Field(
        None, description="column that says how much a row counts (>= 0); no input then"
    )
    class_weights: Annotated[
        dict[str, Annotated[float, Field(ge=0)]] | Literal["balanced"] | None,
        BeforeValidator(_mapped),
    ] = Field(
        None, description="how much a row of a class counts: no=1,yes=5, or balanced (by counts)"
    )
    # A laptop's free space; a cluster's scratch disk takes more.
    cache: str | None = Field(
        None, description="directory for local copies of remote shards; default: read them in place"
    )
    cache_gigabytes: float = Field(
        20, gt=0, le=_MOST_GIGABYTES, description="most that the cache may hold"
    )


class Optimization(_Keys):
    """How weights are learned."""

    steps: int | None = Field(
        None, gt=0, le=MOST_STEPS, description="optimizer steps in all; wins over epochs"
    )
    epochs: float = Field(10, gt=0, description="passes over the training split, if no steps")
    seed: int = Field(
        0, ge=0, le=2**32 - 1, description="decides initial weights, row order and dropout"
    )
    optimizer: Literal["adamw", "adam", "sgd"] = Field("adamw", description="update rule")
    learning_rate: float = Field(1e-3, gt=0, description="peak, before batch scaling")
    weight_decay: float = Field(1e-4, ge=0, description="decoupled, adamw only")
    momentum: float = Field(0.9, ge=0, lt=1, description="sgd only")
    schedule: Literal["constant", "cosine", "step"] = Field(
        "cosine", description="cosine: to 0 at the end; step: times decay_factor at each decay_at"
    )
    warmup_steps: int = Field(0, ge=0, le=MOST_STEPS, description="linear from 0")
    decay_at: Annotated[tuple[Steps, ...], BeforeValidator(_listed)] = Field(
        (), description="schedule step: the steps at which the rate falls, as 3000,6000"
    )
    decay_factor: float = Field(0.1, gt=0, lt=1, description="schedule step: what it is times")
    base_batch: int | None = Field(
        None, gt=0, le=_INT32, description="the global batch that learning_rate was tuned for"
    )
    batch_scaling: Literal["none", "linear", "sqrt"] = Field(
        "none", description="how learning_rate grows with global_batch / base_batch"
    )
    clip_norm: float | None = Field(None, gt=0, description="global norm, after the all-reduce")
    microbatches: int = Field(1, gt=0, description="forward/backward passes a step, to save memory")
    ema_decay: float | None = Field(
        None, gt=0, lt=1, description="average the weights (0.999: over about 1,000 steps); "
        "evaluation and export take the average"
    )  # fmt: skip
    freeze: Names = Field((), description="weights that stay as they are: model/embed_*,…")
    init_from: str | None = Field(
        None, description="run directory whose weights are the first ones (warm start)"
    )
    init_skip: Names = Field((), description="weights not taken from init_from: patterns")
    batch_norm: Literal["synchronized", "averaged"] = Field(
        "synchronized", description="averaged: admit layers that keep statistics of their own on "
        "each replica, and average those before they are used"
    )  # fmt: skip

    @model_validator(mode="after")
    def _consistent(self) -> Optimization:
        if self.batch_scaling != "none" and self.base_batch is None:
            raise ValueError(
                f"batch_scaling ({self.batch_scaling}) needs base_batch: the global batch that "
                "learning_rate was tuned for"
            )
        if (self.schedule == "step") != bool(self.decay_at):
            raise ValueError(
                f"schedule ({self.schedule}) and decay_at ({_spell(self.decay_at)}) belong "
                "together: --schedule step --decay-at 3000,6000"
            )
        if list(self.decay_at) != sorted(set(self.decay_at)):
            raise ValueError(f"decay_at ({_spell(self.decay_at)}) must ascend")
        if self.init_skip and not self.init_from:
            raise ValueError("init_skip says what not to take, but no init_from says from where")
        return self


class Numbers(_Keys):
    """In which numbers, and how the step is compiled."""

    precision: Literal["float32", "bfloat16", "float16"] = Field(
        "float32", description="of the layers' arithmetic; weights and sums stay float32"
    )
    # 2^15: gradients down to 1e-9 survive, and a loss of 1 does not overflow (Keras' default too).
    initial_loss_scale: float = Field(
        32768,
        ge=1,
        le=_LARGEST_SCALE,
        description="float16: what the loss is multiplied by at first",
    )
    loss_scale_growth_steps: int = Field(
        2000, gt=0, le=MOST_STEPS, description="float16: finite steps after which the scale doubles"
    )
    reduce_dtype: Literal["float32", "bfloat16"] = Field(
        "float32", description="of gradients on the network: bfloat16 halves the traffic"
    )
    steps_per_call: int = Field(50, gt=0, le=_INT32, description="steps in one tf.function call")
    jit: Literal["auto", "on", "off"] = Field(
        "auto", description="compile with XLA; auto: on one device, if a trial shows it faster"
    )


class Keeping(_Keys):
    """What is written, how often, and what ends the run early."""

    output: str = Field(
        description="run directory, also in gs:// or s3://; an unfinished run there is resumed"
    )
    checkpoint_every: int = Field(1000, gt=0, description="steps between checkpoints")
    keep_checkpoints: int = Field(3, gt=0, description="newest checkpoints that are kept")
    async_checkpoints: Literal["on", "off"] = Field(
        "on", description="write checkpoints while training goes on"
    )
    log_every: int = Field(100, gt=0, description="steps between metric lines")
    eval_every: int | None = Field(
        None, gt=0, description="steps between evaluations during training"
    )
    eval_split: str = Field("eval", description="split that they look at")
    eval_batch: int | None = Field(
        None, gt=0, le=_INT32, description="rows an evaluation step; default: global_batch"
    )
    best_metric: str = Field("loss", description="evaluation metric that names the best checkpoint")
    best_mode: Literal["auto", "min", "max"] = Field(
        "auto", description="auto: min for losses and errors, max for the rest"
    )
    keep_best: int = Field(1, ge=0, description="best checkpoints that are kept beside the newest")
    early_stop_evals: int | None = Field(
        None, gt=0, description="end after so many evaluations without a better best_metric"
    )
    early_stop_delta: float = Field(0, ge=0, description="what counts as better")
    actions: Names = Field(
        (), description="your callables on interval outputs, as pkg.module:function,…"
    )
    profile: str | None = Field(
        None, pattern=r"^\d+-\d+$", description="steps a-b to trace for TensorBoard's profiler"
    )

    @model_validator(mode="after")
    def _evaluates(self) -> Keeping:
        if self.early_stop_evals and not self.eval_every:
            raise ValueError(
                f"early_stop_evals ({self.early_stop_evals}) needs eval_every: how often to look"
            )
        if self.eval_every and self.eval_split == "train":
            raise ValueError(
                "eval_split (train): its figures would stand among training's own: name another"
            )
        if self.profile and self.profiled_steps[0] >= self.profiled_steps[1]:
            raise ValueError(f"profile ({self.profile}): name the earlier step first, as 100-120")
        return self

    @property
    def profiled_steps(self) -> tuple[int, ...]:
        """`profile` as numbers: the trace begins after the first and ends with the second."""
        return tuple(map(int, self.profile.split("-"))) if self.profile else ()


class Cluster(_Keys):
    """Who trains together, and how long they wait for each other."""

    strategy: Literal["auto", "one_device", "mirrored", "multi_worker", "tpu"] = Field(
        "auto", description="auto: from the cluster and the devices"
    )
    cpu_replicas: int = Field(
        1, gt=0, description="split the CPU into N devices, to try replicas without accelerators"
    )
    startup_deadline_seconds: float = Field(
        300,
        gt=0,
        le=_LONGEST_SECONDS,
        description="how long to wait for all workers before leaving with 138",
    )
    # A killed worker is noticed at once; this is for stopped hosts and cut networks.
    heartbeat_timeout_seconds: float = Field(
        10, gt=0, le=_LONGEST_SECONDS, description="silence after which a worker counts as lost"
    )
    collective_timeout_seconds: float = Field(
        300,
        gt=0,
        le=_LONGEST_SECONDS,
        description="longest wait in a step, and for TensorFlow's servers to connect",
    )
    lifeline_port: int = Field(
        0, ge=0, le=65535, description="the chief's port for signs of life; 0: any that is free"
    )


# What the first line and the last line of a run say, or what is worked out.
_SAID_ANYWAY = ("task", "options", "data", "output", "steps", "epochs", "global_batch", "lanes")

GROUPS: dict[str, type[_Keys]] = {
    "model": Model,
    "data": Data,
    "optimization": Optimization,
    "numbers": Numbers,
    "keeping": Keeping,
    "cluster": Cluster,
}


class TrainConfig(Model, Data, Optimization, Numbers, Keeping, Cluster):
    """One run. Frozen: what is resolved at the start holds until the end."""

    @model_validator(mode="before")
    @classmethod
    def _no_truth_values(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        return without_truth_values(values, cls.model_fields)

    @property
    def settings(self) -> str:
        """Returns what was set otherwise than by default, for people: "ema_decay 0.99, …"."""
        told = [
            f"{name} {_spell(value) if isinstance(value, tuple) else value}"
            for name, field in type(self).model_fields.items()
            if (value := getattr(self, name)) != field.default and name not in _SAID_ANYWAY
        ]
        own = [f"{name} {value}" for name, value in self.options.items()]
        return ", ".join([*told, *own])

    @model_validator(mode="after")
    def _fits(self) -> TrainConfig:
        if self.global_batch % self.microbatches:
            raise ValueError(
                f"microbatches ({self.microbatches}) must divide global_batch ({self.global_batch})"
            )
        return self


def _spell(values: tuple[Any, ...]) -> str:
    return ",".join(map(str, values)) or "none"
