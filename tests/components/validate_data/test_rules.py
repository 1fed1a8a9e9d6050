"""Rules are written as text, for all columns or for one; a mistake is one line that teaches."""

from __future__ import annotations

import pytest

from components.validate_data.rules import KINDS, Rules, parse
from trainer.errors import UsageError


def test_a_rule_changes_a_bound_or_a_level_and_leaves_the_other() -> None:
    rules = Rules(["missing<=0.1", "drift = warn"])
    assert rules.of("missing", "a").threshold == 0.1
    assert rules.of("missing", "a").level == KINDS["missing"].default.level
    assert rules.of("drift").level == "warn"
    assert rules.of("drift").threshold == KINDS["drift"].default.threshold


def test_the_rule_of_a_column_counts_there_whatever_the_order_and_the_later_of_two() -> None:
    rules = Rules(["drift[a]<=0.3", "drift<=0.2", "drift[a] = off", "drift[a]=warn"])
    assert (rules.of("drift", "a").threshold, rules.of("drift", "a").level) == (0.3, "warn")
    assert (rules.of("drift", "b").threshold, rules.of("drift", "b").level) == (0.2, "block")
    assert set(rules.described()) == {*KINDS, "drift[a]"}


def test_a_column_may_have_any_name() -> None:
    assert parse("drift[a [m/s]<=2]<=0.2").column == "a [m/s]<=2"


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("drift", "write it like"),
        ("drift>=0.1", "write it like"),
        ("drft<=0.1", "unknown rule 'drft', did you mean 'drift'?"),
        ("drift=0.1", "'0.1' is no level (block, warn, off); a threshold is set with <="),
        ("drift<=10%", "'10%' is not a number from 0 to 1"),
        ("drift<=nan", "'nan' is not a number from 0 to 1"),
        ("drift<=2", "'2' is not a number from 0 to 1"),
        ("schema<=0.5", "schema has no threshold, only a level: 'schema=warn'"),
    ],
)
def test_what_is_no_rule_is_refused(written: str, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        Rules([written])
    assert text in str(caught.value)
    assert repr(written) in str(caught.value)
