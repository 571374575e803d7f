"""LQR: the paper's system, as it is and with its limits."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp

from hyperirl.environments import LQR, AbstractWorld
from hyperirl.options import Options
from hyperirl.tasks.task import Task
from hyperirl.tasks.variants import scaled

# Raw inputs: an untrained policy runs away, and beyond a normalizer's scale a network
# would be blind. Actions are normal, as those of the exact solution are, also where
# they are clipped.
_OPTIONS = Options(
    temperature=0.1,
    segment=0,
    steps=30,
    policy_hidden=(64, 64),
    normalize=False,
    squash=False,
    reward="quadratic",
    damping=0.1,
    critic_units=0,
    inner_updates=10,
    agent_episodes=64,
    demo_starts=0.0,
)


def _variants(environment: AbstractWorld) -> dict[str, AbstractWorld]:
    assert isinstance(environment, LQR)  # As the tasks below are made.
    A = environment.A
    drift = 2 * A - jnp.eye(A.shape[0], dtype=A.dtype)
    return {
        "B x0.5": scaled(environment, "B", 0.5),
        "A: drift x2": eqx.tree_at(lambda e: e.A, environment, drift),
    }


def lqr(**changes) -> Task:
    """Unlimited: its soft-optimal policy has a closed form."""
    return Task(
        LQR(**changes), "lqr", options=_OPTIONS, demos="lqr", variants=_variants
    )


def lqr_clipped(**changes) -> Task:
    """Actions are clipped at 5, and a state of norm 50 ends the episode."""
    settings: dict[str, Any] = {"max_action": 5.0, "max_norm": 50.0} | changes
    return Task(LQR(**settings), "lqr-clipped", options=_OPTIONS, variants=_variants)
