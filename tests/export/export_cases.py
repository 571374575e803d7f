"""One reward and one policy of every built-in class, with numbers that matter."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hyperirl.networks import Normalizer
from hyperirl.policies import linear_gaussian, mlp_policy, softmax_table
from hyperirl.rewards import (
    MLPReward,
    PolynomialReward,
    QuadraticReward,
    StandaloneReward,
    TableReward,
    mlp_reward,
)
from hyperirl.rewards.polynomial import num_terms
from hyperirl.spaces import Box, Discrete

KEY = jr.key(7)
NORMALIZER = Normalizer(
    jnp.array([0.5, -3.0, 0.01], jnp.float32), jnp.array([2.0, 0.1, 1.0], jnp.float32)
)


def drawn(make, normalizer=None):
    """What `make` makes, with random numbers in it; nothing is compiled."""
    rng = np.random.default_rng(7)
    draw = lambda x: jnp.asarray(rng.normal(0, 0.5, x.shape), x.dtype)
    shapes = eqx.filter_eval_shape(make)
    is_shape = lambda x: isinstance(x, jax.ShapeDtypeStruct)
    module = jax.tree.map(lambda x: draw(x) if is_shape(x) else x, shapes)
    if normalizer is None:
        return module
    return dataclasses.replace(module, normalizer=normalizer)


def rewards():
    """By name."""
    mlp = lambda *args, **options: lambda: mlp_reward(*args, key=KEY, **options)
    choices = drawn(mlp(3, Discrete(4)), NORMALIZER)
    table, roots = jnp.ones((5, 3), jnp.float32), jnp.ones((3, 3), jnp.float32)
    terms = jr.normal(KEY, (5, num_terms(3, 1, mixed=True)), jnp.float32)
    found = {
        "table": drawn(lambda: TableReward(table)),
        "quadratic": drawn(lambda: QuadraticReward(roots, roots[:2, :2])),
        "mlp-choices": choices,
        "mlp-vectors": drawn(mlp(3, Box(2)), NORMALIZER),
        "mlp-plain": drawn(mlp(3, Discrete(2), hidden=())),
        "mlp-sizes-unknown": drawn(mlp(3, Box(2), hidden=(8,))),
        "mlp-clamped": MLPReward(choices.network, 4, NORMALIZER, clamp=0.2),
        "polynomial-choices": PolynomialReward(terms[:4], NORMALIZER, None),
        "polynomial-vectors": PolynomialReward(terms[4:], NORMALIZER, 1),
        "additive-choices": PolynomialReward(terms[:4, :4], NORMALIZER, None, False),
        "additive-vectors": PolynomialReward(terms[4:, :6], NORMALIZER, 2, False),
        "mlp-float64": drawn(mlp(3, Box(1), dtype=jnp.float64)),
    }
    leveled = {
        f"{name}-level": StandaloneReward(r, 0.0693) for name, r in found.items()
    }
    return found | leveled


def policies():
    """By name."""
    mlp = lambda *args, **options: lambda: mlp_policy(*args, key=KEY, **options)
    table, gain = jnp.ones((5, 3), jnp.float32), jnp.ones((2, 4), jnp.float32)
    found = {
        "choices": drawn(mlp(3, Discrete(4)), NORMALIZER),
        "no-bias": drawn(mlp(3, Discrete(2), use_bias=False)),
        "table": drawn(lambda: softmax_table(table)),
        "linear": drawn(lambda: linear_gaussian(gain, gain[:, :2])),
    }
    for covariance in ("diagonal", "full", "state"):
        for squash in (False, True):
            name = f"{covariance}{'-squashed' if squash else ''}"
            options = {"hidden": (8,), "covariance": covariance, "squash": squash}
            found[name] = drawn(mlp(3, Box(2, -2.0, 5.0), **options), NORMALIZER)
    for covariance in ("diagonal", "state"):
        options = {"hidden": (8,), "covariance": covariance, "censor": True}
        made = drawn(mlp(3, Box(2, -2.0, 5.0), **options), NORMALIZER)
        found[f"{covariance}-censored"] = made
    return found


def steps(module, seed: int, *batch: int):
    """Observations and actions of this shape that a module can read, in `float64`."""
    rng = np.random.default_rng(seed)
    size = module.observation_size or 3
    if type(getattr(module, "soft", module)) is TableReward:
        observations = np.eye(size)[rng.integers(0, size, batch)]
    else:
        observations = rng.normal(0, 2, (*batch, size))
    space = module.action_space
    if isinstance(space, Discrete):
        return observations, rng.integers(0, space.num_actions, batch)
    act = space.size if space else _action_size(module)
    low, high = (space.low, space.high) if space else (-np.inf, np.inf)
    middle, half = (0.0, 1.0) if np.isinf(low) else ((high + low) / 2, (high - low) / 2)
    return observations, middle + half * rng.uniform(-0.9, 0.9, (*batch, act))


def _action_size(module) -> int:
    return getattr(module, "soft", module).network.input_size - 3
