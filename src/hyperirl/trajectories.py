"""A batch of episodes: padded to one length, masked, the same for all code."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int


class Trajectories(eqx.Module):
    """Episodes of different lengths, padded at the end.

    Steps after the end of an episode have `mask == False`, and whatever the arrays hold
    there is never read. `terminated` tells an episode that reached an end of the task
    (nothing comes after it: value zero) from one that was merely cut off (the task goes
    on: bootstrap).
    """

    observations: Float[
        Array, "episodes times obs"
    ]  # Steps + 1: the last has no action.
    actions: Int[Array, "episodes steps"] | Float[Array, "episodes steps act"]
    mask: Bool[Array, "episodes steps"]
    terminated: Bool[Array, " episodes"]
    rewards: Float[Array, "episodes steps"] | None = None  # The true ones, if known.

    def __check_init__(self):
        episodes, steps = self.mask.shape
        expected = {
            "observations": (episodes, steps + 1),
            "actions": (episodes, steps),
            "terminated": (episodes,),
            "rewards": (episodes, steps),
        }
        for name, shape in expected.items():
            array = getattr(self, name)
            if array is not None and array.shape[: len(shape)] != shape:
                raise ValueError(
                    f"Expected `{name}` to start with shape {shape} beside a mask of "
                    f"{episodes} episodes x {steps} steps; got {array.shape}. There is "
                    "one more observation than actions: repeat the last one if the "
                    "observation after the last action was not recorded."
                )
        if self.mask.dtype != jnp.bool_ or self.terminated.dtype != jnp.bool_:
            raise ValueError(
                "`mask` and `terminated` must be Boolean, got "
                f"{self.mask.dtype} and {self.terminated.dtype}."
            )
        if self.actions.ndim != (2 if self.discrete else 3):
            raise ValueError(
                "Actions are integers of shape (episodes, steps), or vectors of "
                "floating-point numbers of shape (episodes, steps, size); got "
                f"{self.actions.dtype} of shape {self.actions.shape}."
            )

    @property
    def num_episodes(self) -> int:
        """How many episodes there are."""
        return self.mask.shape[0]

    @property
    def num_steps(self) -> int:
        """The padded length."""
        return self.mask.shape[1]

    @property
    def lengths(self) -> Int[Array, " episodes"]:
        """The number of actions of each episode."""
        return jnp.sum(self.mask, axis=1, dtype=jnp.int32)

    @property
    def discrete(self) -> bool:
        """Whether actions are numbers of choices rather than vectors."""
        return jnp.issubdtype(self.actions.dtype, jnp.integer)

    def __getitem__(self, episodes) -> "Trajectories":
        """The episodes picked by a number, a slice, a mask or an array of numbers."""
        if not isinstance(episodes, slice | Tracer):
            # JAX would quietly take the last episode for one that does not exist.
            episodes = np.arange(self.num_episodes)[np.asarray(episodes)]
        if isinstance(episodes, Tracer):
            episodes = jnp.atleast_1d(episodes)
        elif not isinstance(episodes, slice):
            episodes = np.atleast_1d(episodes)
        return jax.tree.map(lambda leaf: pick(leaf, episodes), self)


def pick(leaf: Array, episodes) -> Array:
    """What an array has of those episodes: by NumPy, where nothing is traced.

    JAX would compile some programs for every shape, which takes longer than a copy.
    """
    if isinstance(leaf, Tracer) or isinstance(episodes, Tracer):
        return leaf[episodes]
    return jnp.array(np.asarray(leaf)[episodes])  # A copy, never a view of its own.


def steps_taken(
    trajectories: Trajectories,
) -> tuple[
    Float[Array, "episodes steps obs"],
    Int[Array, "episodes steps"] | Float[Array, "episodes steps act"],
]:
    """Observations and actions, with an episode's first step in place of its padding.

    So whatever is computed from them is finite if it is finite on the steps taken, and
    so are its derivatives: `where(mask, f(x), 0)` alone has the derivative `0 * f'(x)`,
    which is NaN if the padding `x` is.
    """

    def fill(leaf: Array) -> Array:
        mask = trajectories.mask.reshape(
            trajectories.mask.shape + (1,) * (leaf.ndim - 2)
        )
        return jnp.where(mask, leaf, leaf[:, :1])

    return fill(trajectories.observations[:, :-1]), fill(trajectories.actions)


def discount_weights(
    trajectories: Trajectories, discount: float | Float[Array, ""]
) -> Float[Array, "episodes steps"]:
    """`discount ** t` where the episode is alive and 0 after its end."""
    dtype = trajectories.observations.dtype
    steps = jnp.arange(trajectories.num_steps, dtype=dtype)
    weights = jnp.asarray(discount, dtype) ** steps
    return jnp.where(trajectories.mask, weights[None, :], jnp.zeros((), dtype))


def returns(
    trajectories: Trajectories,
    rewards: Float[Array, "episodes steps"],
    discount: float | Float[Array, ""] = 1.0,
) -> Float[Array, " episodes"]:
    """`sum_t discount ** t * rewards_t` of each episode."""
    weights = discount_weights(trajectories, discount)
    # Not only a product with zero: padding may hold anything, NaN included.
    return jnp.sum(weights * jnp.where(trajectories.mask, rewards, 0.0), axis=1)


def halves(trajectories: Trajectories) -> Trajectories:
    """Two halves of the episodes, stacked on a new first axis; an odd one is left out.

    What it returns is for `vmap`: each slice of it is a batch of trajectories.
    """
    half = trajectories.num_episodes // 2
    split = lambda x: x[: 2 * half].reshape(2, half, *x.shape[1:])
    return jax.tree.map(split, trajectories)


def pad(trajectories: Trajectories, num_steps: int) -> Trajectories:
    """The same episodes with room for `num_steps` steps."""
    extra = num_steps - trajectories.num_steps
    if extra < 0:
        raise ValueError(
            f"Cannot pad {trajectories.num_steps} steps to {num_steps}: that would cut "
            "the episodes. Pad to at least their length."
        )

    def extend(leaf: Array) -> Array:
        if leaf.ndim == 1:
            return leaf
        return jnp.pad(leaf, [(0, 0), (0, extra)] + [(0, 0)] * (leaf.ndim - 2))

    return jax.tree.map(extend, trajectories)


def concatenate(batches: Sequence[Trajectories]) -> Trajectories:
    """All episodes of all batches, padded to the longest.

    True rewards are kept only if every batch has them. Numbers take the type they have
    in the first batch.
    """
    if not batches:
        raise ValueError("Nothing to concatenate: got no batch of trajectories.")
    kinds = [_kind(batch) for batch in batches]
    for i, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise ValueError(
                "Only episodes of the same environment can be concatenated: batch 0 "
                f"has {kinds[0]}, batch {i} has {kind}."
            )
    if any(batch.rewards is None for batch in batches):
        no_rewards = lambda batch: eqx.tree_at(
            lambda b: b.rewards, batch, None, is_leaf=lambda leaf: leaf is None
        )
        batches = [no_rewards(batch) for batch in batches]
    num_steps = max(batch.num_steps for batch in batches)
    padded = [pad(batch, num_steps) for batch in batches]

    def join(*leaves: Array) -> Array:
        return jnp.concatenate([leaf.astype(leaves[0].dtype) for leaf in leaves])

    return jax.tree.map(join, *padded)


def _kind(trajectories: Trajectories) -> str:
    discrete, size = trajectories.discrete, trajectories.actions.shape[-1]
    actions = "discrete actions" if discrete else f"action vectors of size {size}"
    return f"observations of size {trajectories.observations.shape[2]} and {actions}"


def split(
    trajectories: Trajectories, fractions: Sequence[float], *, seed: int
) -> tuple[Trajectories, ...]:
    """Deals the episodes into parts, at random but the same way for the same seed.

    Every part gets at least one episode.

    Args:
        trajectories: What to deal out.
        fractions: The share of each part; they sum to 1.
        seed: Decides who goes where.
    """
    dealt = deal(trajectories.num_episodes, fractions, seed=seed)
    return tuple(trajectories[part] for part in dealt)


def deal(
    total: int, fractions: Sequence[float], *, seed: int
) -> tuple[np.ndarray, ...]:
    """The numbers below `total` in parts: those of the episodes that `split` deals."""
    parts = len(fractions)
    if (
        any(not fraction > 0 for fraction in fractions)
        or abs(sum(fractions) - 1) > 1e-6
    ):
        raise ValueError(
            f"`fractions` must be positive and sum to 1, got {tuple(fractions)}."
        )
    if total < parts:
        raise ValueError(
            f"Cannot split {total} episodes into {parts} parts of at least one. Give "
            "more demonstrations or fewer parts."
        )
    bounds = np.round(np.cumsum(fractions) * total).astype(int)
    # Every cut at least one episode after the one before it, and none too late.
    nth = np.arange(1, parts + 1)
    bounds = nth + np.maximum.accumulate(np.maximum(bounds - nth, 0))
    bounds = np.minimum(bounds, total - parts + nth)
    order = np.random.default_rng(seed).permutation(total)
    return tuple(np.split(order, bounds[:-1]))
