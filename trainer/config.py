"""Every setting of a training run: its default, its unit and the reason for both.

Values come from flags over a YAML (or JSON) file over the defaults. Keys that are not listed here
belong to the Task (`Task.Options`) and are checked once the Task is known.
"""

from __future__ import annotations

import argparse
from typing import Any, Literal, get_args, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from trainer import files
from trainer.errors import UsageError, suggestion

# Keys that may differ between a run and its resumption: they change where or how long it runs,
# what it prints and keeps, but not which weights come out at a given step. (More steps also move
# the end of a cosine schedule, as whoever extends a run wants.)
RESUMABLE_KEYS = frozenset(
    {
        "data", "output", "steps", "epochs", "steps_per_call", "jit", "checkpoint_every",
        "keep_checkpoints", "log_every", "strategy", "cpu_replicas",
        "startup_deadline_seconds", "heartbeat_timeout_seconds", "collective_timeout_seconds",
    }
)  # fmt: skip

_INT32 = 2**31 - 1
# Steps are counted in int32 on the device.
MOST_STEPS = _INT32
_LONGEST_SECONDS = 1e6
# Characters of a value that an error repeats.
_LONGEST_VALUE = 60


class TrainConfig(BaseModel):
    """One run. Frozen: what is resolved at the start holds until the end."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    data: str = Field(description="dataset directory made by `castell shard` (path or URL)")
    output: str = Field(description="run directory; an unfinished run there is resumed")
    task: str = Field("tabular", description="tabular, or your own as pkg.module:Class")
    options: dict[str, Any] = Field(
        default_factory=dict, description="the Task's own keys; flags and top-level keys work too"
    )

    steps: int | None = Field(
        None, gt=0, le=MOST_STEPS, description="optimizer steps in all; wins over epochs"
    )
    epochs: float = Field(10, gt=0, description="passes over the training split, if no steps")
    global_batch: int = Field(256, gt=0, le=_INT32, description="rows a step, over all replicas")
    seed: int = Field(
        0, ge=0, le=2**32 - 1, description="decides initial weights, row order and dropout"
    )

    optimizer: Literal["adamw", "adam", "sgd"] = Field("adamw", description="update rule")
    learning_rate: float = Field(1e-3, gt=0, description="peak, before batch scaling")
    weight_decay: float = Field(1e-4, ge=0, description="decoupled, adamw only")
    momentum: float = Field(0.9, ge=0, lt=1, description="sgd only")
    schedule: Literal["constant", "cosine"] = Field("cosine", description="cosine: to 0 at the end")
    warmup_steps: int = Field(0, ge=0, le=MOST_STEPS, description="linear from 0")
    base_batch: int | None = Field(
        None, gt=0, le=_INT32, description="the global batch that learning_rate was tuned for"
    )
    batch_scaling: Literal["none", "linear", "sqrt"] = Field(
        "none", description="how learning_rate grows with global_batch / base_batch"
    )
    clip_norm: float | None = Field(None, gt=0, description="global norm, after the all-reduce")
    microbatches: int = Field(1, gt=0, description="forward/backward passes a step, to save memory")

    steps_per_call: int = Field(50, gt=0, le=_INT32, description="steps in one tf.function call")
    jit: Literal["on", "off"] = Field("off", description="compile forward and backward with XLA")
    lanes: int | None = Field(
        None, gt=0, description="streams the rows are dealt to; default: as many as shards allow"
    )
    # Eight blocks of 1,024 rows: well mixed (the shards are shuffled already), 1 MB a lane.
    window_rows: int = Field(
        8192, gt=0, le=_INT32, description="rows of a lane that are permuted together"
    )

    checkpoint_every: int = Field(1000, gt=0, description="steps between checkpoints")
    keep_checkpoints: int = Field(3, gt=0, description="newest checkpoints that are kept")
    log_every: int = Field(100, gt=0, description="steps between metric lines")

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
    # TensorFlow's ten would leave a killed worker's peers waiting past the five that we promise.
    heartbeat_timeout_seconds: float = Field(
        4, gt=0, le=_LONGEST_SECONDS, description="silence after which a worker counts as lost"
    )
    collective_timeout_seconds: float = Field(
        300,
        gt=0,
        le=_LONGEST_SECONDS,
        description="longest wait in one all-reduce, and for TensorFlow's servers to connect",
    )

    @model_validator(mode="before")
    @classmethod
    def _no_truth_values(cls, values: Any) -> Any:
        # Pydantic reads YAML's `steps: yes` as one step.
        for key, value in values.items() if isinstance(values, dict) else ():
            if isinstance(value, bool):
                raise ValueError(f"{key} ({value}): no key takes true or false")
        return values

    @model_validator(mode="after")
    def _consistent(self) -> TrainConfig:
        if self.global_batch % self.microbatches:
            raise ValueError(
                f"microbatches ({self.microbatches}) must divide global_batch ({self.global_batch})"
            )
        if self.batch_scaling != "none" and self.base_batch is None:
            raise ValueError(
                f"batch_scaling ({self.batch_scaling}) needs base_batch: the global batch that "
                "learning_rate was tuned for"
            )
        return self


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Adds `--<key> VALUE` for every key; values stay text until pydantic reads them."""
    for name, field in TrainConfig.model_fields.items():
        if name == "options":
            continue
        default = "" if field.is_required() or field.default is None else f" [{field.default}]"
        parser.add_argument(
            "--" + name.replace("_", "-"),
            dest=name,
            default=argparse.SUPPRESS,
            metavar=_metavar(field.annotation),
            help=f"{field.description}{default}",
        )


def _metavar(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return "|".join(map(str, get_args(annotation)))
    names = [getattr(t, "__name__", str(t)) for t in get_args(annotation)] or [annotation.__name__]
    return {"str": "TEXT", "int": "N", "float": "X"}.get(names[0], names[0].upper())


def load(file: str | None, flags: dict[str, Any]) -> TrainConfig:
    """Returns the configuration of `file` (YAML or JSON) with `flags` over it.

    Unknown top-level keys go to `options`: only the Task can tell whether they are right.

    Raises:
      UsageError: the file is not a mapping, or a value is missing or not allowed.
    """
    values = _read(file) if file else {}
    values.pop("dataset_fingerprint", None)  # what a run's config.json has beside its configuration
    if "options" in flags:
        raise UsageError("--options is no flag: pass the Task's keys as flags of their own")
    options = values.pop("options", None) or {}
    if not isinstance(options, dict):
        raise UsageError(f"options ({_short(options)}): expected `key: value` lines")
    options = dict(options)
    merged: dict[str, Any] = {}
    for key, value in {**values, **flags}.items():
        name = key.replace("-", "_")
        (merged if name in TrainConfig.model_fields else options)[name] = value
    try:
        return TrainConfig.model_validate({**merged, "options": options})
    except ValidationError as error:
        raise UsageError(explain(error)) from None


def _read(path: str) -> dict[str, Any]:
    try:
        values = yaml.safe_load(files.read_text(path))
    except FileNotFoundError:
        raise UsageError(f"--config {path}: no such file") from None
    except OSError as error:
        raise UsageError(f"--config {path} cannot be read: {error.strerror or error}") from None
    except (yaml.YAMLError, ValueError) as error:
        line = " ".join(str(error).split())
        raise UsageError(f"--config {path} is not YAML: {line}") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise UsageError(f"--config {path}: expected `key: value` lines, got {_short(values)}")
    return {str(key): value for key, value in values.items()}


def parse_options(options_class: type[BaseModel], options: dict[str, Any]) -> Any:
    """Returns the Task's options; a key that neither it nor TrainConfig knows is an error."""
    own = list(options_class.model_fields)
    for key in options:
        if key in TrainConfig.model_fields and key not in own:
            raise UsageError(f"config key {key!r} stands beside `options`, not inside it")
        if key not in own:
            near = suggestion(key, own + list(TrainConfig.model_fields))
            raise UsageError(f"unknown config key {key!r}{near} (see --help)")
    try:
        return options_class.model_validate(options)
    except ValidationError as error:
        raise UsageError(explain(error)) from None


def explain(error: ValidationError) -> str:
    """Returns pydantic's first complaint as one line: key, value, rule."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return f"{key} is required: pass --{key.replace('_', '-')}"
    message = first["msg"].removeprefix("Value error, ")
    if not key:
        return message
    return f"{key} ({_short(first['input'])}): {message[0].lower()}{message[1:]}"


def _short(value: Any) -> str:
    try:
        text = str(value)
    except ValueError:  # an int of more digits than Python spells out
        return "a huge number"
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."
