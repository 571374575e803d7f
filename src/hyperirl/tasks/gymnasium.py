"""Tasks of Gymnasium's environments, which are stepped by the host."""

from typing import Any, cast

from hyperirl.options import Options
from hyperirl.spaces import ActionSpace, Discrete
from hyperirl.tasks.task import Task

GYM = "gym:"  # Before the id of an environment.
_BUDGET = 2_000_000  # Steps until a robot's policy has settled.
_TEMPERATURES = {"InvertedPendulum": 0.02}
"""By the names of worlds, where the usual one does not suit. InvertedPendulum pays 1 a
step: at 0.1 noise is worth so much beside it that the best policy falls now and then.
"""


def of_gymnasium(
    given: Any,
    *,
    workers: int = 0,
    ray: bool = False,
    horizon: int | None = None,
    longest: int | None = None,
) -> Task:
    """A task of an environment of Gymnasium's.

    Args:
        given: `gym:ID`, an environment, a vector environment, or a function that makes
            an environment.
        workers: Processes that step shards of the environments; 0: this one does.
        ray: Whether the workers are actors of Ray, which must be running.
        horizon: Where episodes are cut; by default where the environment says.
        longest: How long demonstrations are: where they are cut if nothing says.
    """
    import gymnasium
    from gymnasium.vector import VectorEnv

    from hyperirl.worlds import make_world, variants_of

    name = given if isinstance(given, str) else None
    known = isinstance(given, str | gymnasium.Env | VectorEnv) or callable(given)
    if not known:
        raise ValueError(
            "A task is a name, a `Task`, an environment or a function that makes one, "
            f"got {type(given).__name__}; derive the environment's class from "
            "`hyperirl.environments.AbstractEnvironment` or `gymnasium.Env`."
        )
    world = make_world(
        cast(Any, given), horizon=horizon, longest=longest, workers=workers, ray=ray
    )
    return Task(
        world,
        world.name if name is None else name,
        options=_options(world.action_space, world.name),
        budget=_BUDGET,
        variants=lambda environment: variants_of(
            cast(Any, given), horizon=world.horizon, workers=workers, ray=ray
        ),
    )


def _options(space: ActionSpace, name: str) -> Options:
    """What suits robots: little inner work for each outer step, for steps are dear.

    Expert minus agent is the hypergradient where the policy is soft-optimal. Estimates
    that need a critic of the reward's gradient are noisier here, and learn less. The
    reward is additive. Inside the loop others are learned as well, and robots that
    are trained on them from scratch stand still, or throw themselves forward and fall.
    """
    if isinstance(space, Discrete):
        return Options()
    return Options(
        temperature=_TEMPERATURES.get(name.split("-v")[0]),
        method="matching",
        reward="additive",
        trust_region=False,
        step_kl=5.0,
        learning_rate=0.5,
        inner_updates=5,
        adaptive=False,
    )
