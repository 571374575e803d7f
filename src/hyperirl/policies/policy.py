"""Policies: a distribution over actions for every observation."""

import abc
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, DTypeLike, Float, PRNGKeyArray

from hyperirl import describing
from hyperirl.networks import MLP, Normalizer, linear_map
from hyperirl.policies.actor import AbstractActor
from hyperirl.policies.censored import CensoredHead
from hyperirl.policies.distributions import AbstractDistribution
from hyperirl.policies.heads import (
    AbstractHead,
    CategoricalHead,
    Covariance,
    GaussianHead,
)
from hyperirl.spaces import ActionSpace, Discrete
from hyperirl.steps import Numbers, each_step
from hyperirl.trajectories import Trajectories, steps_taken


class AbstractPolicy(AbstractActor):
    """Anything differentiable that gives a distribution over actions.

    A class of your own writes `distribution` for one observation. The other methods
    take one step, or many with the same axes before their own.
    """

    @abc.abstractmethod
    def distribution(self, observation: Float[Array, " obs"]) -> AbstractDistribution:
        """The distribution over actions for one observation."""

    def sample(self, observation: Any, *, key: PRNGKeyArray) -> Array:
        """An action for every observation."""
        return each_step("policy", _sample, self, observation, key=key)

    def log_prob(self, observation: Numbers, action: Numbers) -> Float[Array, "*batch"]:
        """The log-probability (or log-density) of every action."""
        return each_step("policy", _log_prob, self, observation, action)

    def predict(
        self,
        observation: Numbers,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        *,
        key: PRNGKeyArray | None = None,
    ) -> tuple[np.ndarray, Any]:
        """An action for every observation in NumPy, and the state as it was given.

        As in Stable-Baselines3, so that its tools can play a policy.

        Args:
            observation: One, or many.
            state: Handed back; these policies remember nothing.
            episode_start: Not looked at, for the same reason.
            deterministic: Whether to take the likeliest choice, or the middle of a
                Gaussian, in place of a draw.
            key: For the draw; by default from NumPy's global generator, which
                Stable-Baselines3 seeds.
        """
        if deterministic:
            actions = np.asarray(each_step("policy", _mode, self, observation))
        else:
            key = jr.key(np.random.randint(2**31)) if key is None else key
            actions = np.asarray(self.sample(observation, key=key))
        integers = np.issubdtype(actions.dtype, np.integer)
        return actions.astype(np.int64) if integers else actions, state

    def entropy(self, observation: Numbers) -> Float[Array, "*batch"]:
        """The entropy of the distribution over actions, for every observation."""
        return each_step("policy", _entropy, self, observation)

    @property
    def min_scale(self) -> float | None:
        """The smallest scale of an action; None: there is no limit to be told of."""
        return None

    def at_min_scale(self, observation: Float[Array, " obs"]) -> Float[Array, ""]:
        """The share of an action's components whose scale is at that limit."""
        return jnp.zeros((), observation.dtype)

    @property
    def observation_size(self) -> int | None:
        """How many numbers an observation has; None: not known."""
        return None

    @property
    def action_space(self) -> ActionSpace | None:
        """What an action is; None: not known."""
        return None


def _sample(policy: AbstractPolicy, observation: Array, key: PRNGKeyArray) -> Array:
    return policy.distribution(observation).sample(key=key)


def _mode(policy: AbstractPolicy, observation: Array) -> Array:
    return policy.distribution(observation).mode()


def _log_prob(policy: AbstractPolicy, observation: Array, action: Array) -> Array:
    return policy.distribution(observation).log_prob(action)


def _entropy(policy: AbstractPolicy, observation: Array) -> Array:
    return policy.distribution(observation).entropy()


class Policy(AbstractPolicy):
    """A network, and a head that reads its outputs.

    Some outputs may be `free` parameters, the same for every observation: the scale of
    a Gaussian. A network without hidden layers gives the classical policies: the
    tabular softmax (one-hot observations) and the linear-Gaussian one.
    """

    kind: ClassVar[str] = "network"
    network: MLP
    free: Float[Array, " free"]
    head: AbstractHead
    normalizer: Normalizer | None = None

    def __check_init__(self):
        sizes = self.network.output_size, self.free.shape
        if sizes != (self.head.network_size, (self.head.free_size,)):
            raise ValueError(
                f"The network does not fit the head, which reads "
                f"{self.head.network_size} of its outputs and {self.head.free_size} "
                f"free parameters, got {sizes[0]} and {self.free.size}."
            )
        inputs, normalizer = self.network.input_size, self.normalizer
        if normalizer is not None and normalizer.mean.shape != (inputs,):
            raise ValueError(
                "The normalizer does not fit the network, got shape "
                f"{normalizer.mean.shape} beside {inputs} inputs."
            )

    @property
    def min_scale(self) -> float | None:
        return self.head.min_scale

    def at_min_scale(self, observation: Float[Array, " obs"]) -> Float[Array, ""]:
        return self.head.at_min_scale(self.outputs(observation))

    @property
    def observation_size(self) -> int:
        return self.network.input_size

    @property
    def action_space(self) -> ActionSpace:
        return self.head.action_space

    def outputs(self, observation: Float[Array, " obs"]) -> Float[Array, " outputs"]:
        """What the head reads."""
        if self.normalizer is not None:
            observation = self.normalizer(observation)
        return jnp.concatenate([self.network(observation), self.free])

    def distribution(self, observation: Numbers) -> AbstractDistribution:
        """The distribution over actions for one observation, or for many.

        For many it has the numbers of all of them, with the axes of the batch first:
        map over it with `jax.vmap`.
        """
        return each_step("policy", _distribution, self, observation)

    def draw_noise(self, *, key: PRNGKeyArray) -> Array:
        """That of its distributions, which does not depend on the observation."""
        size = self.head.network_size + self.head.free_size
        some = self.head.distribution(jnp.zeros(size, self.free.dtype))
        return some.draw_noise(key=key)

    def act(self, observation: Float[Array, " obs"], noise: Array) -> Array:
        return self.distribution(observation).transform(noise)

    def score_factors(
        self, observation: Float[Array, " obs"], delta: Float[Array, " outputs"]
    ) -> list[tuple[Float[Array, " _"] | None, Float[Array, " _"]]]:
        """The gradient of `delta . outputs`, block by block of the parameters.

        A pair `(activation, delta)` stands for a layer: the weight's gradient is
        `outer(delta, activation)`, and that of the bias, if the layer has one, `delta`.
        A pair `(None, delta)` stands for the free parameters. The blocks are in the
        order in which `jax.flatten_util.ravel_pytree` lays the parameters out.
        """
        if self.normalizer is not None:
            observation = self.normalizer(observation)
        size = self.head.network_size
        layers = self.network.factors(observation, delta[:size])
        free = [(None, delta[size:])] if self.free.size else []
        return [*layers, *free]

    def describe(self) -> dict[str, Any]:
        """As plain values."""
        normalizer = self.normalizer
        return {
            "network": self.network.describe(),
            "free": describing.describe_array(self.free),
            "head": describing.describe(self.head),
            "normalizer": None if normalizer is None else normalizer.describe(),
        }

    @classmethod
    def rebuild(cls, fields: describing.Fields) -> "Policy":
        """From plain values."""
        normalizer = lambda name: fields.part(name, Normalizer)
        return cls(
            fields.part("network", MLP),
            fields.array("free", 1),
            fields.kind_of("head", AbstractHead),
            fields.optional("normalizer", normalizer),
        )


def _distribution(policy: Policy, observation: Array) -> AbstractDistribution:
    return policy.head.distribution(policy.outputs(observation))


def mlp_policy(
    observation_size: int,
    action_space: ActionSpace,
    *,
    key: PRNGKeyArray,
    hidden: Sequence[int] = (64, 64),
    covariance: Covariance = "diagonal",
    squash: bool = False,
    censor: bool = False,
    initial_log_scale: float = -0.5,
    normalizer: Normalizer | None = None,
    use_bias: bool = True,
    dtype: DTypeLike = jnp.float32,
) -> Policy:
    """A policy with tanh hidden layers that starts out nearly the same everywhere.

    Args:
        observation_size: Length of the observation vector.
        action_space: Discrete gives a categorical policy, a box a Gaussian one.
        key: For the initial weights.
        hidden: Sizes of the hidden layers; `()` for a linear policy.
        covariance: Of the Gaussian; see `GaussianHead`.
        squash: Whether Gaussian actions are squashed into the box by tanh...
        censor: ...or clipped to it, with a probability for each bound; see
            `CensoredHead`.
        initial_log_scale: Log of the Gaussian's scale at the start; in half boxes if
            it is clipped.
        normalizer: Applied to observations first; not trained.
        use_bias: Whether layers have biases.
        dtype: Of the parameters.
    """
    if isinstance(action_space, Discrete):
        head = CategoricalHead(action_space.num_actions)
    elif censor:
        if squash or covariance == "full":
            raise ValueError(
                "Clipped actions are neither squashed nor correlated: with `censor`, "
                "leave `squash` out and choose covariance='diagonal' or 'state'."
            )
        bounds = action_space.low, action_space.high
        head = CensoredHead(action_space.size, bounds, covariance)
    else:
        bounds = (action_space.low, action_space.high) if squash else None
        head = GaussianHead(action_space.size, covariance, bounds)
    sizes = (observation_size, *hidden, head.network_size)
    network = MLP(sizes, key=key, output_gain=0.01, use_bias=use_bias, dtype=dtype)
    free = jnp.zeros(head.free_size, dtype)
    if not isinstance(head, CategoricalHead) and covariance == "state":
        bias = network.layers[-1].bias
        if bias is None:
            raise ValueError(
                "With covariance='state' the network's last bias is the initial "
                "log-scale: keep `use_bias=True`, or choose another covariance."
            )
        bias = bias.at[head.size :].set(initial_log_scale)
        network = eqx.tree_at(lambda n: n.layers[-1].bias, network, bias)
    elif not isinstance(head, CategoricalHead):
        free = free.at[: head.size].set(initial_log_scale)
    return Policy(network, free, head, normalizer)


def softmax_table(logits: Float[Array, "states actions"]) -> Policy:
    """The tabular softmax policy; observations are one-hot states."""
    free = jnp.zeros(0, logits.dtype)
    return Policy(linear_map(logits.T), free, CategoricalHead(logits.shape[1]))


def linear_gaussian(
    gain: Float[Array, "act obs"], scale_tril: Float[Array, "act act"]
) -> Policy:
    """The policy `a ~ N(-gain @ observation, scale_tril @ scale_tril.T)`."""
    act = gain.shape[0]
    below = scale_tril[jnp.tril_indices(act, -1)]
    free = jnp.concatenate([jnp.log(jnp.diagonal(scale_tril)), below])
    # No bounds: the scale is the one given, however small or large.
    head = GaussianHead(act, "full", log_scale_bounds=(-math.inf, math.inf))
    return Policy(linear_map(-gain), free, head)


def log_probs(
    policy: AbstractPolicy, trajectories: Trajectories
) -> Float[Array, "episodes steps"]:
    """The log-probability of every action taken; 0 in the padding."""
    per_step = jax.vmap(jax.vmap(policy.log_prob))
    return jnp.where(trajectories.mask, per_step(*steps_taken(trajectories)), 0.0)
