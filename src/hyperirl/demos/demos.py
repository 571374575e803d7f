"""Demonstrations: episodes of an expert, and where they come from."""

import dataclasses
from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from hyperirl.demos.provenance import Provenance
from hyperirl.trajectories import Trajectories, deal, pick


@dataclasses.dataclass(frozen=True, eq=False)
class Demos:
    """Episodes of an expert, and where they come from.

    Not a pytree: the numbers that compiled code works on are `trajectories`.
    """

    trajectories: Trajectories
    provenance: Provenance = Provenance()
    expert_log_probs: Float[Array, "episodes steps"] | None = None
    """`log pi(a_t | s_t)` of the expert itself, if known; 0 in the padding."""

    def __post_init__(self):
        expected = self.trajectories.mask.shape
        given = self.expert_log_probs
        if given is not None and given.shape != expected:
            raise ValueError(
                f"Expected `expert_log_probs` of shape {expected}, one number for each "
                f"step; got {given.shape}."
            )

    @property
    def num_episodes(self) -> int:
        """How many episodes there are."""
        return self.trajectories.num_episodes

    @property
    def expert_nll(self) -> Float[Array, " episodes"] | None:
        """`-sum_t log pi(a_t | s_t)` of each episode under the expert: the floor.

        Undiscounted. No policy does better on average than the one that acted.
        """
        if self.expert_log_probs is None:
            return None
        return -jnp.sum(self.expert_log_probs, axis=1)

    def __getitem__(self, episodes) -> "Demos":
        """The episodes picked by a slice, a mask or an array of indices."""
        log_probs = self.expert_log_probs
        if log_probs is not None:
            log_probs = pick(log_probs, episodes)
        return Demos(self.trajectories[episodes], self.provenance, log_probs)


def split(demos: Demos, fractions: Sequence[float], *, seed: int) -> tuple[Demos, ...]:
    """Deals the episodes into parts, exactly as `trajectories.split` does.

    Args:
        demos: What to deal out.
        fractions: The share of each part; they sum to 1.
        seed: Decides who goes where.
    """
    dealt = deal(demos.num_episodes, fractions, seed=seed)
    return tuple(demos[part] for part in dealt)
