"""The reward that the world paid, where it is no function of what is seen."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float


class RecordedReward(eqx.Module):
    """Stands for the rewards that were recorded with the steps.

    A runner is paid for the ground it covers, which its observation does not show. So
    these rewards travel with every batch, replay and trajectory: `of_steps` reads them
    there.
    """

    def __call__(self, observation: Array, action: Array) -> Float[Array, ""]:
        """Refused: they are not known for a step that was not taken."""
        raise ValueError(
            "The true reward of this world is known only for steps that were taken, "
            "not as a function of observation and action; read what was recorded."
        )

    def of_steps(self, steps: Any) -> Float[Array, "..."]:
        """What was paid for steps that know it."""
        if steps.rewards is None:
            raise ValueError(
                f"These {type(steps).__name__} hold no recorded rewards; play the "
                "steps again in a world that pays them."
            )
        return steps.rewards


def recorded(reward: Any, steps: Any) -> Float[Array, "..."] | None:
    """The recorded rewards, if the reward stands for them; None for any other."""
    of_steps = getattr(reward, "of_steps", None)
    return None if of_steps is None else of_steps(steps)
