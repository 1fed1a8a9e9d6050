"""Shares of an endpoint's traffic: whole percents by deployed model, 100 in all."""

from __future__ import annotations

from collections.abc import Mapping

ALL = 100


def with_share(
    shares: Mapping[str, int], model: str, percent: int, heir: str = ""
) -> dict[str, int]:
    """Returns the shares when `model` has `percent` and the others what is left, as before.

    If the others had nothing, `heir` takes what is left; if there is no other, `model` takes all.
    """
    others = {name: share for name, share in shares.items() if name != model}
    if not others:
        return {model: ALL}
    left, had = ALL - percent, sum(others.values())
    if not had:
        others = {name: int(name == (heir or next(iter(others)))) for name in others}
        had = 1
    exact = {name: share * left / had for name, share in others.items()}
    whole = {name: int(share) for name, share in exact.items()}
    # Percents lost by rounding go where most was lost.
    by_loss = sorted(exact, key=lambda name: whole[name] - exact[name])
    for name in by_loss[: left - sum(whole.values())]:
        whole[name] += 1
    return {model: percent, **whole}
