"""When a schedule starts its runs: the five fields of cron, read before anything is sent.

Both platforms take what they cannot mean, such as minute 99, and then never start a run.
"""

from __future__ import annotations

import re
import zoneinfo

from trainer.errors import UsageError, suggestion

EXAMPLE = "'30 2 * * *'"
# KFP's cron begins with seconds; people's does not.
SECONDS_FIELDS = 6
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_FIELDS: dict[str, tuple[int, int]] = {
    "second": (0, 59), "minute": (0, 59), "hour": (0, 23), "day of the month": (1, 31),
    "month": (1, 12), "day of the week": (0, 6),
}  # fmt: skip
_NAMES = {
    "month": {name: number for number, name in enumerate(_MONTHS, 1)},
    "day of the week": {name: number for number, name in enumerate(_DAYS)},
}
# Vertex's alone: Sunday once more.
_LAST_DAY = {"kfp": 6, "vertex": 7}
_PART = re.compile(r"(?:\*|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>[0-9]+))?")
_ZONE = re.compile(r"(?:CRON_)?TZ=(.*)")


def read(text: str, target: str) -> str:
    """Returns `text` as `target` takes it: KFP's with seconds, Vertex's with its zone, if any.

    Raises:
      UsageError: it names no moments, or a time zone that is none.
    """
    words = text.split()
    zone = _ZONE.fullmatch(words[0]) if words else None
    if zone:
        if target == "kfp":
            raise UsageError(f"--cron '{text}': KFP knows no time zone there; it counts in UTC")
        _check_zone(text, zone[1])
    fields = words[1:] if zone else words
    names = list(_FIELDS)
    if target == "kfp" and len(fields) == SECONDS_FIELDS - 1:
        fields = ["0", *fields]
    if target == "vertex":
        names = names[1:]
    if len(fields) != len(names):
        more = "" if target == "kfp" else " or 'TZ=Europe/Paris 30 …'"
        raise UsageError(f"--cron '{text}': must be 5 fields, such as {EXAMPLE}{more}")
    for name, field in zip(names, fields, strict=True):
        low, high = _FIELDS[name]
        high = _LAST_DAY[target] if name == "day of the week" else high
        if target == "kfp" and field == "?":  # what KFP's own pages write for a day that is open
            continue
        if not all(_is_part(part, name, low, high) for part in field.split(",")):
            raise UsageError(
                f"--cron '{text}': {name} ({field}): must be *, or of {low} to {high}, such as "
                f"{low}, {low}-{high}, {low},{high} or */{low + 2}"
            )
    return " ".join([*words[: 1 if zone else 0], *fields])


def _is_part(part: str, name: str, low: int, high: int) -> bool:
    found = _PART.fullmatch(part)
    if not found or (found["step"] and not 1 <= int(found["step"]) <= high):
        return False
    ends = [_number(word, name) for word in (found["first"], found["last"]) if word]
    return ends == sorted(ends) and all(low <= end <= high for end in ends)


def _number(word: str, name: str) -> int:
    """Returns what a word of a field means, -1 (which no field takes) if that is nothing."""
    if word.isascii() and word.isdigit():
        return int(word)
    return _NAMES.get(name, {}).get(word.upper(), -1)


def _check_zone(text: str, zone: str) -> None:
    known = zoneinfo.available_timezones()
    # Some machines have no list.
    if known and zone not in known:
        near = suggestion(zone, sorted(known))
        raise UsageError(f"--cron '{text}': no time zone {zone!r}{near}")
