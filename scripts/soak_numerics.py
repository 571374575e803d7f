"""Demonstrations and sizes at the edge: each is learned from, or refused in a sentence.

Two outer steps each, of the smallest kind: what is asked is whether the numbers stay
finite and the command ends, not what is learned.
"""

import dataclasses
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SMALL = dict(steps=2, inner_updates=1, agent_episodes=4, adaptive=False, progress=False)


def run(child: Callable[..., Any], only: list[str]) -> list[dict]:
    """A row for each case: what became of it, in words, and how long it took."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="hyperirl-numerics-") as folder:
        log = Path(folder) / "log"
        for case in CASES:
            if only and case.__name__ not in only:
                continue
            began = time.monotonic()
            ended = child(lambda case=case: _tell(case), log, None)
            lines = ended.words.strip().splitlines() or [""]
            rows.append(
                {
                    "case": (case.__doc__ or "").rstrip("."),
                    "outcome": lines[-1][:300],
                    "seconds": round(time.monotonic() - began, 1),
                    "wrong": int(ended.code != 0),
                }
            )
            print(rows[-1], flush=True)
    return rows


def _tell(case: Callable[[], Any]) -> None:
    """Prints what became of a case; fails unless it is finite, or a sentence."""
    import equinox as eqx
    import jax

    from hyperirl._jax import enable_compilation_cache

    enable_compilation_cache()
    try:
        learned = case()
    except ValueError as error:
        print(f"refused: {error}")
        return
    learned_numbers = eqx.filter((learned.reward, learned.policy), eqx.is_array)
    leaves = jax.tree.leaves(learned_numbers)
    if not all(np.isfinite(np.asarray(leaf)).all() for leaf in leaves):
        raise SystemExit("not finite")
    last = learned.metrics[-1]
    skipped = sum(row.get("skipped", 0) for row in learned.metrics)
    left_out = f", {skipped} of {len(learned.metrics)} steps left out" * bool(skipped)
    print(f"learned, finite (held-out NLL {last['nll_valid']:.3g}){left_out}")


def _learn(task: Any, shown: Any, **more: Any) -> Any:
    from hyperirl.learning import learn

    return learn(task, shown, **SMALL | more)


def _shown(name: str) -> Any:
    from hyperirl import demos

    return demos.load(name)


def _changed(shown: Any, **changes: Callable[[np.ndarray], np.ndarray]) -> Any:
    """Demonstrations with some of their arrays replaced."""
    import jax.numpy as jnp

    old = shown.trajectories
    new = {
        name: jnp.asarray(change(np.array(getattr(old, name))))
        for name, change in changes.items()
    }
    return type(shown)(dataclasses.replace(old, **new))


def one_demonstration() -> Any:
    """One demonstration."""
    return _learn("cartpole", _shown("cartpole")[np.array([0])])


def identical() -> Any:
    """Ten identical demonstrations."""
    return _learn("cartpole", _shown("cartpole")[np.zeros(10, int)])


def constant_observations() -> Any:
    """Constant observations."""
    return _learn("cartpole", _changed(_some(), observations=np.zeros_like))


def one_action() -> Any:
    """One action only."""
    return _learn("cartpole", _changed(_some(), actions=np.zeros_like))


def at_the_bounds() -> Any:
    """All actions at the bounds."""
    shown = _shown("pendulum")[np.arange(10)]
    ends = lambda actions: np.where(actions < 0, -2.0, 2.0).astype(actions.dtype)
    return _learn("pendulum", _changed(shown, actions=ends))


def one_step() -> Any:
    """Episodes of one step."""
    from hyperirl import demos

    batch = _some().trajectories
    episodes = [
        demos.Episode(np.asarray(seen[:2]), np.asarray(taken[:1]), terminated=False)
        for seen, taken in zip(batch.observations, batch.actions, strict=True)
    ]
    return _learn("cartpole", demos.from_episodes(episodes))


def long_horizon() -> Any:
    """A horizon of 10,000 steps."""
    from hyperirl import tasks

    task = tasks.make("cartpole-fixed", horizon=10_000)
    return _learn(task, _shown("cartpole-fixed")[np.arange(10)])


def wide_policy() -> Any:
    """A policy of 512x512."""
    return _learn("cartpole", _some(), policy_hidden=(512, 512))


def no_hidden_layer() -> Any:
    """A policy and a reward without a hidden layer."""
    return _learn("cartpole", _some(), policy_hidden=(), reward_hidden=())


def _some() -> Any:
    return _shown("cartpole")[np.arange(10)]


CASES = (
    one_demonstration,
    identical,
    constant_observations,
    one_action,
    at_the_bounds,
    one_step,
    long_horizon,
    wide_policy,
    no_hidden_layer,
)
