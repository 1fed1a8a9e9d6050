"""Types, decided from what all pieces say together, and the errors that name cell and remedy."""

from __future__ import annotations

from collections.abc import Callable

from components.shard_data.findings import Findings, flag
from components.shard_data.options import ShardOptions
from components.shard_data.types.look import FLOAT32_MAX
from components.shard_data.types.plan import Plan
from components.shard_data.types.profile import Mark, Profile
from trainer.errors import UsageError

Where = Callable[[Mark], str]

# Longer cells are cut in errors, which are one line.
_LONGEST_SHOWN = 60
# Above this, neighbouring whole numbers fall together in float32.
_EXACT_IN_FLOAT32 = 1 << 24
_WORDS = {"int64": "int64", "float32": "number", "bool": "true or false", "date": "ISO date",
          "timestamp": "ISO timestamp"}  # fmt: skip


def decide(
    name: str,
    whole: Profile,
    options: ShardOptions,
    where: Where,
    say: Findings,
) -> Plan | None:
    """Returns how the column is stored, or None (and says so) if it holds no value.

    Args:
      name: of the column.
      whole: what all pieces say of it.
      options: `types`, `decimal`, `thousands`.
      where: file and line of a mark's first row.
      say: takes the notes.

    Raises:
      UsageError: numbers and other words mixed, numbers that are out of range, texts that are
        not of the type that `--type` declares.
    """
    if whole.kind == "text":
        return _from_text(name, whole, options, where, say)
    if whole.kind == "null" or not whole.rows("value"):
        say.drop_column(name, "it has no value in any row")
        return None
    for note in whole.notes:
        say.note(f"column {name}{note}")
    words = None if whole.shape else whole.words
    if whole.kind == "float64":
        kind = _of_floats(name, whole, say)
        return Plan(name, kind, whole.shape)
    return Plan(name, whole.kind, whole.shape, words if whole.kind == "string" else None)


def _of_floats(name: str, whole: Profile, say: Findings) -> str:
    """Whole numbers, some beyond 2^24, become int64: float32 would merge neighbours."""
    if not whole.rows("unwhole") and _EXACT_IN_FLOAT32 < whole.largest < 2**63:
        say.note(f"column {name} is int64: its whole numbers go beyond what float32 tells apart")
        return "int64"
    if whole.largest > FLOAT32_MAX:
        raise UsageError(
            f"column {name} holds {whole.largest:g}, beyond float32: scale it, or leave it out "
            f"with {flag('--drop', name)}"
        )
    return "float32"


def _from_text(
    name: str, whole: Profile, options: ShardOptions, where: Where, say: Findings
) -> Plan | None:
    declared: str | None = options.types.get(name)
    if not whole.rows("any" if declared == "string" else "value"):
        say.drop_column(name, "it has no value in any row")
        return None
    kind = declared or _infer(name, whole, options, where, say)
    if whole.rows("unfit"):
        raise _unfit(name, whole.first("unfit"), where, _WORDS[kind])
    if kind == "int64":
        _refuse_beyond_int64(name, whole, where)
    elif kind == "float32":
        kind = _text_floats(name, whole, where, say, is_declared=declared is not None)
    elif kind == "timestamp":
        for remark in whole.notes:
            say.note(f"column {name}: {remark}")
    words = whole.words if kind == "string" else None
    return Plan(name, kind, words=words, as_text=True)


def _infer(name: str, whole: Profile, options: ShardOptions, where: Where, say: Findings) -> str:
    """Returns the type that the column's own texts say."""
    rows = whole.rows
    mostly_numbers = 2 * rows("number") >= rows("value")
    if rows("leading_zero") and mostly_numbers:
        number = "float32" if rows("fraction") else "int64"
        say.note(
            f"column {name} is text: {whole.first('leading_zero').text!r} begins with a zero "
            f"({flag('--type', f'{name}={number}')} makes numbers of it)"
        )
        return "string"
    if not rows("word"):
        return "float32" if rows("fraction") else "int64"
    if not rows("number"):
        for kind in ("bool", "date", "timestamp"):
            if not rows(f"odd_{kind}"):
                return kind
    _refuse_decimal_commas(name, whole, options)
    if mostly_numbers:
        raise _mixture(name, "numbers", rows("number"), whole.first("word"), where)
    moments = rows("word") - rows("odd_timestamp")
    if 2 * moments > rows("value"):
        what = "dates" if rows("odd_date") == rows("odd_timestamp") else "timestamps"
        odd = min(whole.first("odd_timestamp"), whole.first("number"), key=_place)
        odd = odd.model_copy(update={"rows": rows("value") - moments})
        raise _mixture(name, what, moments, odd, where)
    return "string"


def _refuse_decimal_commas(name: str, whole: Profile, options: ShardOptions) -> None:
    if options.decimal == "," or options.thousands == ",":
        return
    if not whole.rows("odd_comma") and whole.rows("comma") >= whole.rows("number"):
        raise UsageError(
            f"column {name} holds numbers with commas ({whole.first('comma').text!r}): say what "
            "the comma means, --decimal ',' or --thousands ',', or keep it as text with "
            f"{_as_text(name)}"
        )


def _place(mark: Mark) -> tuple[bool, int, int]:
    return not mark.rows, mark.piece, mark.row


def _mixture(name: str, what: str, count: int, first: Mark, where: Where) -> UsageError:
    cell = first.text
    return UsageError(
        f"column {name} holds {count:,} {what} and {first.rows:,} other values, "
        f"first {_shown(cell)} ({where(first)}): if that means missing, "
        f"{_null_flag(f'={cell}' if '=' in cell else cell)}; to keep all of it as text, "
        f"{_as_text(name)}"
    )


def _unfit(name: str, first: Mark, where: Where, kind: str) -> UsageError:
    return UsageError(
        f"column {name}: {_shown(first.text)} ({where(first)}) is no {kind}: if it means missing, "
        f"{_null_flag(f'{name}={first.text}')}; to keep all of it as text, {_as_text(name)}"
    )


def _refuse_beyond_int64(name: str, whole: Profile, where: Where) -> None:
    if not whole.rows("beyond_int64"):
        return
    first = whole.first("beyond_int64")
    raise UsageError(
        f"column {name}: {_shortened(first.text)} ({where(first)}) is beyond int64: "
        f"{_as_text(name)} keeps the digits, {flag('--type', f'{name}=float32')} rounds"
    )


def _text_floats(
    name: str, whole: Profile, where: Where, say: Findings, *, is_declared: bool
) -> str:
    if whole.rows("beyond_float32"):
        first = whole.first("beyond_float32")
        raise UsageError(
            f"column {name}: {_shortened(first.text)} ({where(first)}) is beyond float32: if it "
            f"means missing, {_null_flag(f'{name}={first.text}')}; to keep all of it as text, "
            f"{_as_text(name)}"
        )
    return "float32" if is_declared else _of_floats(name, whole, say)


def _as_text(name: str) -> str:
    return flag("--type", f"{name}=string")


def _null_flag(value: str) -> str:
    """A `--null-value` to paste into a shell; V stands for what does not fit into a line."""
    if len(value) > _LONGEST_SHOWN or not value.isprintable():
        value = "V"
    return flag("--null-value", value)


def _shown(cell: str) -> str:
    return repr(_shortened(cell))


def _shortened(cell: str) -> str:
    return cell if len(cell) <= _LONGEST_SHOWN else cell[:_LONGEST_SHOWN] + "…"
