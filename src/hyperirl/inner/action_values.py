"""Action values `Q(s, a)`, and the soft value of a policy under them.

For discrete actions a network puts out the values of all of them, and expectations over
actions are sums. For vectors it reads the action, and expectations are one sample that
gradients pass through.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hyperirl.networks import MLP, Normalizer
from hyperirl.policies import (
    AbstractDistribution,
    Categorical,
    SquashedGaussian,
)
from hyperirl.spaces import ActionSpace, Discrete


class ActionValue(eqx.Module):
    """`mean + scale * network(z)`, with `z` the normalized input.

    The input is the observation, followed by the action if that is a vector. Mean and
    scale are those of the targets: rewards may have any size.
    """

    network: MLP
    inputs: Normalizer
    targets: Normalizer
    count: Int[Array, ""]  # Of batches the statistics have seen.
    discrete: bool = eqx.field(static=True)

    def __call__(
        self, observation: Float[Array, " obs"], action: Array
    ) -> Float[Array, ""]:
        """The value of an action."""
        if self.discrete:
            return self.all(observation)[action]
        return self._outputs(jnp.concatenate([observation, action]))[0]

    def all(self, observation: Float[Array, " obs"]) -> Float[Array, " actions"]:
        """The values of all discrete actions."""
        return self._outputs(observation)

    def _outputs(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        return self.targets.mean + self.targets.scale * self.network(self.inputs(x))

    def error(
        self,
        observation: Float[Array, " obs"],
        action: Array,
        target: Float[Array, ""],
    ) -> Float[Array, ""]:
        """Half the squared error, in units of the targets' spread."""
        difference = self(observation, action) - target
        return 0.5 * (difference / self.targets.scale[0]) ** 2

    def track(
        self,
        observations: Float[Array, "batch obs"],
        actions: Array,
        targets: Float[Array, " batch"],
    ) -> "ActionValue":
        """Takes a batch into the running statistics, leaving all values as they were.

        Targets are followed for ever; inputs are normalized by the first batch, since
        moving that would move the values with it.
        """
        x = observations
        if not self.discrete:
            x = jnp.concatenate([observations, actions], axis=1)
        count = self.count + 1
        seen = _towards(self.inputs, x, jnp.where(count == 1, 1.0, 0.0))
        old, rate = self.targets, jnp.maximum(1 / count.astype(jnp.float32), 0.01)
        new = _towards(old, targets[:, None], rate)
        ratio, last = old.scale[0] / new.scale[0], self.network.layers[-1]
        assert last.bias is not None
        shift = (old.mean - new.mean) / new.scale
        network = eqx.tree_at(
            lambda network: (network.layers[-1].weight, network.layers[-1].bias),
            self.network,
            (last.weight * ratio, last.bias * ratio + shift),
        )
        return ActionValue(network, seen, new, count, self.discrete)


def action_value(
    observation_size: int,
    action_space: ActionSpace,
    hidden: Sequence[int],
    *,
    key: PRNGKeyArray,
) -> ActionValue:
    """Action values that are zero everywhere."""
    discrete = isinstance(action_space, Discrete)
    size = observation_size + (0 if discrete else action_space.size)
    outputs = action_space.num_actions if discrete else 1
    network = MLP(
        (size, *hidden, outputs), key=key, output_gain=0.0, activation=jax.nn.relu
    )
    unit = lambda size: Normalizer(
        jnp.zeros(size, jnp.float32), jnp.ones(size, jnp.float32)
    )
    count = jnp.zeros((), jnp.int32)
    return ActionValue(network, unit(size), unit(1), count, discrete)


def soft_value(
    chosen: AbstractDistribution,
    values: Callable[[Array], Array],
    temperature: Float[Array, ""],
    *,
    key: PRNGKeyArray,
) -> Float[Array, ""]:
    """`E_{a ~ pi} [Q(a) - alpha log pi(a)]` in one state.

    Args:
        chosen: `pi`, in that state.
        values: `Q`: from an action to its value; for discrete actions it is given all
            actions at once, as their numbers.
        temperature: `alpha`.
        key: For the sample, if actions are vectors.
    """
    if isinstance(chosen, Categorical):
        actions = jnp.arange(chosen.logits.size, dtype=jnp.int32)
        gains = values(actions) - temperature * chosen.log_probs
        return jnp.sum(jnp.exp(chosen.log_probs) * gains)
    if isinstance(chosen, SquashedGaussian):
        action, log_prob = chosen.sample_and_log_prob(key=key)
    else:
        action = chosen.sample(key=key)
        log_prob = chosen.log_prob(action)
    return values(action) - temperature * log_prob


def _towards(
    old: Normalizer, data: Float[Array, "batch size"], rate: Float[Array, ""]
) -> Normalizer:
    square = old.scale**2 + old.mean**2
    mean = old.mean + rate * (jnp.mean(data, axis=0) - old.mean)
    square = square + rate * (jnp.mean(data**2, axis=0) - square)
    return Normalizer(mean, jnp.sqrt(jnp.maximum(square - mean**2, 1e-6)))
