"""Value networks that keep track of the scale of what they predict.

Discounted sums of rewards can be anything from thousandths to thousands, and change
when the reward does. A critic therefore predicts in units of the running mean and
spread of its targets; rewards themselves are never rescaled, because their size against
the temperature is the problem.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from hyperirl.networks import MLP, Normalizer

_RATE = 0.1  # How fast running statistics follow the data, after the first batches.


class Critic(eqx.Module):
    """`mean + scale * network((x - input mean) / input scale)`, for one input vector.

    The statistics are `Normalizer`s, so they are not trained by gradients.
    """

    network: MLP
    inputs: Normalizer
    targets: Normalizer  # Of size 1.
    count: Int[Array, ""]  # Of batches seen.

    def __call__(self, x: Float[Array, " size"]) -> Float[Array, ""]:
        """The predicted value."""
        return self.targets.mean[0] + self.targets.scale[0] * self.normalized(x)

    def normalized(self, x: Float[Array, " size"]) -> Float[Array, ""]:
        """The prediction in units of the targets' spread."""
        return self.network(self.inputs(x))[0]

    def track(
        self, x: Float[Array, "batch size"], targets: Float[Array, " batch"]
    ) -> "Critic":
        """Moves the statistics towards those of a batch.

        The last layer is rescaled so that a change of the targets' statistics leaves
        every prediction as it was.
        """
        count = self.count + 1
        rate = jnp.maximum(_RATE, 1 / count.astype(jnp.float32))
        inputs = _towards(self.inputs, x, rate)
        new, old = _towards(self.targets, targets[:, None], rate), self.targets
        last = self.network.layers[-1]
        assert last.bias is not None
        ratio = old.scale[0] / new.scale[0]
        shift = (old.mean - new.mean) / new.scale
        network = eqx.tree_at(
            lambda network: (network.layers[-1].weight, network.layers[-1].bias),
            self.network,
            (last.weight * ratio, last.bias * ratio + shift),
        )
        return Critic(network, inputs, new, count)


def critic(size: int, hidden: Sequence[int], *, key: PRNGKeyArray) -> Critic:
    """A critic that starts at zero everywhere."""
    network = MLP((size, *hidden, 1), key=key, output_gain=0.0)
    return Critic(network, _unit(size), _unit(1), jnp.zeros((), jnp.int32))


def _unit(size: int) -> Normalizer:
    return Normalizer(jnp.zeros(size, jnp.float32), jnp.ones(size, jnp.float32))


def _towards(
    old: Normalizer, data: Float[Array, "batch size"], rate: Float[Array, ""]
) -> Normalizer:
    """Follows mean and mean square; the scale stays away from zero."""
    square = old.scale**2 + old.mean**2
    mean = old.mean + rate * (jnp.mean(data, axis=0) - old.mean)
    square = square + rate * (jnp.mean(data**2, axis=0) - square)
    return Normalizer(mean, jnp.sqrt(jnp.maximum(square - mean**2, 1e-6)))
