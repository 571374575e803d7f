"""A state value whose last layer is solved for instead of trained.

When the reward changes, a critic that only learns by gradient steps is wrong for a
while, and so is the policy gradient; and it must be told the scale of its targets. Here
the last layer is fitted to every batch by least squares, at the price of one small
linear system. Gradient steps are left with what they are good at: the hidden layers.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hyperirl.networks import MLP, Normalizer

_RATE = 0.2  # How fast the inputs' statistics follow the data, after a few batches.
_MAX_PRODUCTS = 16  # Inputs up to this length are also multiplied with each other.
_MEMORY = 0.1
_HOLD = 0.1
_RIDGE = 1e-4  # Towards the last weights: what a batch does not show is not forgotten.


class Critic(eqx.Module):
    """`V(x) = weights . [1, z, products of z, tanh network(z)]`, `z` normalized `x`.

    With the products, the values of linear-quadratic problems are exact.
    """

    network: MLP
    weights: Float[Array, " features"]
    seen: Float[Array, "features features"]  # Running mean of features' products.
    inputs: Normalizer
    count: Int[Array, ""]  # Of batches seen.

    def __call__(self, x: Float[Array, " size"]) -> Float[Array, ""]:
        """The value of one input."""
        return self.weights @ self.features(x)

    def features(self, x: Float[Array, " size"]) -> Float[Array, " features"]:
        """What the value is linear in."""
        z = self.inputs(x)
        parts = [jnp.ones(1, z.dtype), z, jnp.tanh(self.network(z))]
        if z.size <= _MAX_PRODUCTS:
            first, second = np.triu_indices(z.size)
            parts.append(z[first] * z[second])
        return jnp.concatenate(parts)

    def track(self, x: Float[Array, "batch size"]) -> "Critic":
        """Moves the inputs' statistics towards those of a batch.

        The values are wrong until the weights are fitted again.
        """
        count = self.count + 1
        rate = jnp.maximum(_RATE, 1 / count.astype(jnp.float32))
        old, spread = self.inputs, jnp.maximum(jnp.std(x, axis=0), 1e-3)
        mean = old.mean + rate * (jnp.mean(x, axis=0) - old.mean)
        # A mean of logs soon forgets a policy that let the state run away.
        scale = old.scale * (spread / old.scale) ** rate
        return Critic(
            self.network, self.weights, self.seen, Normalizer(mean, scale), count
        )


def critic(size: int, hidden: Sequence[int], *, key: PRNGKeyArray) -> Critic:
    """A critic that is zero everywhere."""
    network_key, bias_key = jr.split(key)
    network = MLP((size, *hidden), key=network_key)
    # Spread out, so that the features differ also near the middle.
    bias = jr.uniform(bias_key, (hidden[-1],), jnp.float32, -1.0, 1.0)
    network = eqx.tree_at(lambda n: n.layers[-1].bias, network, bias)
    ones, zeros = jnp.ones(size, jnp.float32), jnp.zeros(size, jnp.float32)
    count = jnp.zeros((), jnp.int32)
    none = jnp.zeros(0, jnp.float32)
    blank = Critic(network, none, none.reshape(0, 0), Normalizer(zeros, ones), count)
    num_features = jax.eval_shape(blank.features, zeros).shape[0]
    weights = jnp.zeros(num_features, jnp.float32)
    seen = jnp.zeros((num_features, num_features), jnp.float32)
    return eqx.tree_at(lambda c: (c.weights, c.seen), blank, (weights, seen))


def fit(
    old: Critic,
    observations: Float[Array, "steps envs obs"],
    next_observations: Float[Array, "steps envs *actions obs"],
    errors: Callable[[Array, Array], Float[Array, "steps envs"]],
    *,
    num_iterations: int,
) -> tuple[Critic, Float[Array, "steps envs"], Float[Array, "steps envs *actions"]]:
    """Regresses the last layer on the values a batch shows, a few times over.

    Args:
        old: Where to start from.
        observations: The inputs.
        next_observations: What each step led to, or each action would have.
        errors: What the batch shows of the values, less the values; from the values of
            both kinds of observations.
        num_iterations: How often to repeat, since what is shown depends on the values.

    Returns:
        The critic, and the values of both kinds of observations.
    """
    flat = lambda x: x.reshape(-1, *x.shape[2:])
    new = old.track(flat(observations))
    now, after = (
        _each(new.features, observations),
        _each(new.features, next_observations),
    )
    gram = (flat(now).T @ flat(now) / flat(now).shape[0]).astype(jnp.float64)
    ridge = _RIDGE * jnp.eye(gram.shape[0], dtype=jnp.float64)
    seen = _capped(old.seen.astype(jnp.float64), gram)
    prior = _HOLD * seen + ridge
    factor = cho_factor(gram + prior)
    held = prior @ old.weights.astype(jnp.float64)

    def regress(carry, _):
        values, next_values = carry
        targets = values + errors(values, next_values)
        side = flat(now).T @ flat(targets) / flat(now).shape[0]
        weights = cho_solve(factor, side.astype(jnp.float64) + held)
        weights = weights.astype(jnp.float32)
        return (now @ weights, after @ weights), weights

    start = _each(old, observations), _each(old, next_observations)
    (values, next_values), weights = jax.lax.scan(regress, start, length=num_iterations)
    seen = (seen + _MEMORY * (gram - seen)).astype(jnp.float32)
    new = eqx.tree_at(lambda c: (c.weights, c.seen), new, (weights[-1], seen))
    return new, values, next_values


def _each(function: Callable[[Array], Array], x: Float[Array, "*batch size"]) -> Array:
    """The function of every input."""
    results = jax.vmap(function)(x.reshape(-1, x.shape[-1]))
    return results.reshape(*x.shape[:-1], *results.shape[1:])


def _capped(
    seen: Float[Array, "features features"], gram: Float[Array, "features features"]
) -> Float[Array, "features features"]:
    """Shrinks features that used to be far larger than they are now.

    Early experience can be wild, and would otherwise outweigh all that follows.
    """
    past, present = jnp.diagonal(seen), jnp.diagonal(gram)
    shrink = jnp.sqrt(jnp.minimum(1.0, 3 * present / jnp.maximum(past, 1e-12)))
    return shrink[:, None] * seen * shrink[None, :]


def critic_loss(
    value: Critic, inputs: Float[Array, "batch size"], targets: Float[Array, " batch"]
) -> Float[Array, ""]:
    """Mean squared error in units of the targets' spread."""
    errors = jax.vmap(value)(inputs) - targets
    return 0.5 * jnp.mean(errors**2) / jnp.maximum(jnp.var(targets), 1e-12)
