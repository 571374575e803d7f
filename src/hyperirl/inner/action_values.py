"""Action values `Q(s, a)`, and the soft value of a policy under them.

For discrete actions a network puts out the values of all of them, and expectations over
actions are sums. For vectors it reads the action, and expectations are one sample that
gradients pass through.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from hyperirl.networks import MLP, Normalizer
from hyperirl.policies import AbstractDistribution, Categorical
from hyperirl.spaces import ActionSpace, Discrete


class ActionValue(eqx.Module):
    """`Q = g(network(z))`, with `z` the normalized input and a steep, odd `g`.

    The input is the observation, followed by the action if that is a vector. Since
    `g(u) = u (|u| + 2)`, values may be thousands far from home and still be told apart
    to tenths near it.
    """

    network: MLP
    inputs: Normalizer
    discrete: bool = eqx.field(static=True)

    def __call__(
        self, observation: Float[Array, " obs"], action: Array
    ) -> Float[Array, ""]:
        """The value of an action."""
        return _stretch(self._output(observation, action))

    def all(self, observation: Float[Array, " obs"]) -> Float[Array, " actions"]:
        """The values of all discrete actions."""
        return _stretch(self.network(self.inputs(observation)))

    def _output(
        self, observation: Float[Array, " obs"], action: Array
    ) -> Float[Array, ""]:
        if self.discrete:
            return self.network(self.inputs(observation))[action]
        return self.network(self.inputs(jnp.concatenate([observation, action])))[0]

    def error(
        self,
        observation: Float[Array, " obs"],
        action: Array,
        target: Float[Array, ""],
    ) -> Float[Array, ""]:
        """Half the squared error, in units of the slope of `g`.

        The unit depends on state and action but not on the target, so that the best
        value is still the target's expectation.
        """
        output = self._output(observation, action)
        slope = 2 * (jnp.abs(jax.lax.stop_gradient(output)) + 1)
        return 0.5 * ((_stretch(output) - target) / slope) ** 2


def _stretch(u: Float[Array, "..."]) -> Float[Array, "..."]:
    return u * (jnp.abs(u) + 2)


def action_value(
    observations: Float[Array, "batch obs"],
    actions: Array,
    action_space: ActionSpace,
    hidden: Sequence[int],
    *,
    key: PRNGKeyArray,
) -> ActionValue:
    """Action values that are zero everywhere, for inputs like those of a batch."""
    discrete = isinstance(action_space, Discrete)
    x = observations if discrete else jnp.concatenate([observations, actions], axis=1)
    outputs = action_space.num_actions if discrete else 1
    sizes = (x.shape[1], *hidden, outputs)
    network = MLP(sizes, key=key, output_gain=0.0, activation=jax.nn.relu)
    spread = jnp.std(x, axis=0)
    inputs = Normalizer(jnp.mean(x, axis=0), jnp.where(spread > 1e-3, spread, 1.0))
    return ActionValue(network, inputs, discrete)


def soft_value(
    chosen: AbstractDistribution,
    value: Callable[[Array], Float[Array, ""]],
    all_values: Callable[[], Float[Array, " actions"]],
    temperature: Float[Array, ""],
    *,
    key: PRNGKeyArray,
) -> Float[Array, ""]:
    """`E_{a ~ pi} [Q(a) - alpha log pi(a)]` in one state.

    Args:
        chosen: `pi`, in that state.
        value: `Q` of an action that is a vector.
        all_values: `Q` of all actions, if they are discrete.
        temperature: `alpha`.
        key: For the sample, if actions are vectors.
    """
    if isinstance(chosen, Categorical):
        gains = all_values() - temperature * chosen.log_probs
        return jnp.sum(jnp.exp(chosen.log_probs) * gains)
    action, log_prob = chosen.sample_and_log_prob(key=key)
    return value(action) - temperature * log_prob
