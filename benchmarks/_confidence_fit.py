"""Logistic regression for the confidence of an answer: few features, a fixed small penalty, Newton's method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PENALTY: Final = 1.0
_STEPS: Final = 50


def fitted(features: NDArray[np.float64], answered: NDArray[np.bool_], weights: NDArray[np.float64]) -> list[float]:
    """Return the log odds: the base, and one for each feature.

    Args:
        features: Shape (questions, features).
        answered: What they are to tell, shape (questions,).
        weights: How much each question counts.
    """
    scale = np.where(features.std(axis=0) > 0, features.std(axis=0), 1.0)
    rows = np.column_stack([np.ones(len(features)), features / scale])
    penalty = np.diag([0.0] + [_PENALTY] * features.shape[1])
    found = np.zeros(rows.shape[1])
    for _ in range(_STEPS):
        odds = probability(rows, found)
        slope = rows.T @ (weights * (answered - odds)) - penalty @ found
        curve = (rows * (weights * odds * (1 - odds))[:, None]).T @ rows + penalty
        step = np.linalg.solve(curve, slope)
        found += step
        if np.abs(step).max() < 1e-9:
            break
    values: list[float] = [float(found[0]), *(found[1:] / scale).tolist()]
    return values


def probability(rows: NDArray[np.float64], found: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability for each row, the first column of which is 1."""
    odds: NDArray[np.float64] = 1 / (1 + np.exp(-rows @ found))
    return odds


def balanced(sets: NDArray[np.str_], answered: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return weights with which each set counts the same, and its two kinds of questions half of it each."""
    weights = np.zeros(len(sets))
    kinds = sorted(set(sets.tolist()))
    for name in kinds:
        for kind in (True, False):
            chosen = (sets == name) & (answered == kind)
            if chosen.any():
                weights[chosen] = len(sets) / (2 * len(kinds) * chosen.sum())
    return weights


def bins(values: NDArray[np.float64], true: NDArray[np.bool_], weights: NDArray[np.float64]) -> list[dict[str, float]]:
    """Return a reliability diagram: for each tenth the mean of what was said, the share that was true, and how many."""
    found = []
    for tenth in range(10):
        chosen = (np.minimum(9, (values * 10).astype(int)) == tenth) & (weights > 0)
        if chosen.any():
            said = float(np.average(values[chosen], weights=weights[chosen]))
            was = float(np.average(true[chosen], weights=weights[chosen]))
            found.append({"from": tenth / 10, "said": said, "was": was, "count": int(chosen.sum())})
    return found
