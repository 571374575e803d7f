"""Whether an expert acts almost without chance, as far as its actions can tell.

Whatever predicts actions it has not seen bounds from above how much chance is in them.
So a good prediction shows that there is almost none; a bad one shows nothing.
"""

import numpy as np

from hyperirl.demos.demos import Demos

_MAX_STEPS, _MAX_NEIGHBORS, _MAX_QUERIES = 20_000, 4000, 200
_LEAST = 50  # Predictions, to say anything.
_ACCURACY = 0.99
_ERROR = 0.02  # Of a component of an action, in units of its deviation.
_LOG_PROB = -0.02  # Of a choice, on average.


def evidence_of_determinism(demos: Demos) -> str | None:
    """What shows that there is almost no chance in the actions; `None` if nothing does.

    Choices are predicted by what was chosen before in the same place, and by a
    quadratic logistic regression; vectors by local linear regressions.
    """
    batch = demos.trajectories
    mask = np.asarray(batch.mask)
    observations = np.asarray(batch.observations, np.float64)[:, :-1][mask]
    actions = np.asarray(batch.actions)[mask]
    if np.all(actions == actions[:1]):
        return "it always does the same"
    if batch.discrete:
        return _of_choices(demos, mask, observations, actions)
    episodes = np.broadcast_to(np.arange(len(mask))[:, None], mask.shape)[mask]
    error = _local_error(_standardized(observations), actions, episodes)
    if error is None or error > _ERROR:
        return None
    return f"actions in similar states differ by {error:.1%} of their spread"


def _of_choices(
    demos: Demos, mask: np.ndarray, observations: np.ndarray, actions: np.ndarray
) -> str | None:
    if demos.expert_log_probs is not None:
        mean = float(np.mean(np.asarray(demos.expert_log_probs)[mask]))
        if mean > _LOG_PROB:
            return f"its choices have a probability of {np.exp(mean):.1%}"
        return None
    again = _repeated(observations, actions)
    if again is not None and again >= _ACCURACY:
        return f"where it came again, it did the same in {again:.1%} of cases"
    predicted = _predicted(_standardized(observations), actions)
    if predicted is not None and predicted >= _ACCURACY:
        return f"a simple rule predicts {predicted:.1%} of the actions it has not seen"
    return None


def _standardized(rows: np.ndarray) -> np.ndarray:
    deviation = np.std(rows, axis=0)
    return (rows - np.mean(rows, axis=0)) / np.where(deviation > 0, deviation, 1.0)


def _repeated(observations: np.ndarray, actions: np.ndarray) -> float | None:
    """How often the choice is the one made before in the same place."""
    before: dict[bytes, int] = {}
    same = []
    for observation, action in zip(observations, actions.tolist(), strict=True):
        place = observation.tobytes()
        if place in before:
            same.append(before[place] == action)
        before[place] = action
    return float(np.mean(same)) if len(same) >= _LEAST else None


def _predicted(observations: np.ndarray, actions: np.ndarray) -> float | None:
    """How often a rule learned from half of the steps is right in the other half."""
    generator = np.random.default_rng(0)
    order = generator.permutation(len(observations))[:_MAX_STEPS]
    x, a = _quadratic(observations[order]), actions[order]
    half = len(order) // 2
    if half < max(_LEAST, 5 * x.shape[1]):
        return None
    choices = np.unique(a)
    scores = np.stack(
        [x[half:] @ _logistic(x[:half], a[:half] == c) for c in choices], axis=1
    )
    return float(np.mean(choices[np.argmax(scores, axis=1)] == a[half:]))


def _quadratic(x: np.ndarray) -> np.ndarray:
    """1, the numbers and their products, unless these would be too many."""
    parts = [np.ones((len(x), 1)), x]
    if x.shape[1] <= 15:
        first, second = np.triu_indices(x.shape[1])
        parts.append(x[:, first] * x[:, second])
    return np.concatenate(parts, axis=1)


def _logistic(x: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Weights of the most likely logistic regression, by Newton's method."""
    ridge = 1e-3
    weights = np.zeros(x.shape[1])
    for _ in range(12):
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        gradient = x.T @ (chosen - p) - ridge * weights
        curvature = (x * (p * (1 - p) + 1e-6)[:, None]).T @ x
        curvature += ridge * np.eye(len(weights))
        weights = weights + np.linalg.solve(curvature, gradient)
    return weights


def _local_error(
    x: np.ndarray, actions: np.ndarray, episodes: np.ndarray
) -> float | None:
    """The median error of the component that is predicted worst.

    Where an action is clipped, chance does not show: only steps are predicted in which
    a component is neither at its least nor at its greatest.
    """
    generator = np.random.default_rng(0)
    order = generator.permutation(len(x))[:_MAX_NEIGHBORS]
    x, actions, episodes = x[order], actions[order].astype(np.float64), episodes[order]
    near = 2 * (x.shape[1] + 1)
    queries = np.arange(min(len(x), _MAX_QUERIES))
    distances = np.stack([np.sum((x - x[query]) ** 2, axis=1) for query in queries])
    distances[queries, queries] = np.inf
    if np.any(episodes != episodes[0]):  # Chance may last for a whole episode.
        same = episodes[queries][:, None] == episodes[None, :]
        distances = np.where(same, np.inf, distances)
    if np.min(np.sum(np.isfinite(distances), axis=1)) < near:
        return None
    nearest = np.argpartition(distances, near - 1, axis=1)[:, :near]
    error = np.abs(actions[queries] - _local_fit(x, actions, queries, nearest))
    inside = (actions > actions.min(axis=0)) & (actions < actions.max(axis=0))
    errors = [
        np.median(error[inside[queries, i], i]) / np.std(actions[:, i])
        for i in range(actions.shape[1])
        if np.sum(inside[queries, i]) >= _LEAST
    ]
    return float(max(errors)) if errors else None


def _local_fit(
    x: np.ndarray, actions: np.ndarray, queries: np.ndarray, nearest: np.ndarray
) -> np.ndarray:
    """What a linear regression on the neighbors says about the queries."""
    away = x[nearest] - x[queries][:, None]
    design = np.concatenate([np.ones((*away.shape[:2], 1)), away], axis=2)
    gram = design.transpose(0, 2, 1) @ design
    size = np.trace(gram, axis1=1, axis2=2)[:, None, None]
    gram = gram + 1e-8 * size * np.eye(gram.shape[1])
    return np.linalg.solve(gram, design.transpose(0, 2, 1) @ actions[nearest])[:, 0]
