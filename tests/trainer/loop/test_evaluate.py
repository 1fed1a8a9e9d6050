"""Evaluation during training: each row once, the figures of one replica on any number of them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.steps import TOLERANCE, Train


@pytest.mark.parametrize("where", [{"cpus": 2}, {"workers": 2}])
@pytest.mark.parametrize("rows", [70, 1000])
def test_the_figures_are_those_of_one_replica(
    train: Train, where: dict[str, int], rows: int
) -> None:
    """keras#21061, keras#21467, keras#20601: finite, too."""
    one, other = train(rows=rows), train(rows=rows, **where)
    assert np.isfinite(one["figures"]).all()
    assert other["figures"] == pytest.approx(one["figures"], abs=TOLERANCE)


def test_the_loss_is_that_of_the_predictions(train: Train) -> None:
    outcome = train()
    p, y = outcome["outputs"].astype(float), outcome["labels"]
    loss = -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))
    loss_found, auc, accuracy = outcome["figures"]
    assert loss_found == pytest.approx(loss, abs=1e-5)
    assert accuracy == pytest.approx(np.mean((p > 0.5) == (y > 0.5)))
    positives, negatives = p[y == 1], p[y == 0]
    exact = np.mean(positives[:, None] > negatives)
    assert auc == pytest.approx(exact, abs=0.01)  # Keras counts 200 thresholds


def test_averages_are_evaluated_in_place_of_the_weights(train: Train) -> None:
    outcome = train(ema_decay=0.9)
    plain, averaged = np.split(outcome["figures"], 2)
    assert plain == pytest.approx(train()["figures"], abs=TOLERANCE)
    assert abs(averaged[0] - plain[0]) > 1e-4
