"""Moments of a schedule: what cannot be is refused, the rest goes as the platform takes it."""

import pytest

from pipelines.submit import cron
from trainer.errors import UsageError


@pytest.mark.parametrize(
    ("text", "target", "sent"),
    [
        ("30 2 * * *", "kfp", "0 30 2 * * *"),
        ("15 30 2 * * *", "kfp", "15 30 2 * * *"),
        ("0 0 2 * * ?", "kfp", "0 0 2 * * ?"),
        ("30 2 * * *\n", "vertex", "30 2 * * *"),
        ("TZ=Europe/Paris  30 2 * * *", "vertex", "TZ=Europe/Paris 30 2 * * *"),
        ("CRON_TZ=UTC 0 0 1 jan SUN", "vertex", "CRON_TZ=UTC 0 0 1 jan SUN"),
        ("*/5 9-17/2 1,15 JAN-MAR MON-FRI", "vertex", "*/5 9-17/2 1,15 JAN-MAR MON-FRI"),
        ("0 0 * * 7", "vertex", "0 0 * * 7"),
    ],
)
def test_moments_go_as_the_platform_takes_them(text: str, target: str, sent: str) -> None:
    assert cron.read(text, target) == sent


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "must be 5 fields"),
        (" ", "must be 5 fields"),
        ("@daily", "must be 5 fields"),
        ("0 0 0 0 0 0 0", "must be 5 fields"),
        ("99 99 99 99 99", "minute .99.: must be"),
        ("0 24 * * *", "hour .24.: must be"),
        ("0 0 0 * *", "day of the month .0.: must be"),
        ("0 0 * 13 *", "month .13.: must be"),
        ("0 0 * * 8", "day of the week .8.: must be"),
        ("-1 * * * *", "minute .-1.: must be"),
        ("5-1 * * * *", "minute .5-1.: must be"),
        ("*/0 * * * *", "minute .*/0.: must be"),
        ("1, * * * *", "minute .1,.: must be"),
        ("a b c d e", "minute .a.: must be"),
        ("0 0 * * JAN", "day of the week .JAN.: must be"),
    ],
)
@pytest.mark.parametrize("target", ["kfp", "vertex"])
def test_what_is_no_moment_is_refused(text: str, says: str, target: str) -> None:
    with pytest.raises(UsageError, match=says.replace("*", r"\*")):
        cron.read(text, target)


@pytest.mark.parametrize("zone", ["Nowhere", "", "Europe/Pariss", "../etc"])
def test_a_zone_must_be_one(zone: str) -> None:
    with pytest.raises(UsageError, match=f"no time zone {zone!r}"):
        cron.read(f"TZ={zone} 1 2 * * *", "vertex")
    with pytest.raises(UsageError, match="KFP knows no time zone"):
        cron.read(f"TZ={zone} 1 2 * * *", "kfp")
