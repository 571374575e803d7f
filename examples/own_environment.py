"""Your own environment: demonstrations, a learned reward, and what it is worth.

A car on a road is to stop at the origin. Run it: `python examples/own_environment.py`.
"""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr

import hyperirl as hi
from hyperirl.environments import AbstractEnvironment
from hyperirl.spaces import Discrete


class Parking(AbstractEnvironment):
    """The state is position and speed; the choices are brake, coast, accelerate."""

    horizon: int = eqx.field(static=True, default=40)
    observation_size: int = eqx.field(static=True, default=2)
    action_space: Discrete = eqx.field(static=True, default=Discrete(3))

    def reset(self, *, key):
        return jr.uniform(key, (2,), jnp.float32, -1.0, 1.0)

    def observe(self, state):
        return state

    def advance(self, state, action, *, key):
        position, speed = state
        speed = jnp.clip(speed + 0.2 * (action - 1).astype(jnp.float32), -1.0, 1.0)
        position = jnp.clip(position + 0.2 * speed, -2.0, 2.0)  # The road has two ends.
        return jnp.stack([position, speed]), jnp.asarray(False)

    # Optional. The expert below is trained on it; learning never looks at it.
    def reward(self, observation, action):
        return -jnp.sum(observation**2)

    # Optional. With it, practice can start in demonstrated states.
    def state_of(self, observation):
        return observation


def main(steps: int = 20, updates: int = 60, budget: int = 300_000) -> dict:
    """Collects, learns, evaluates."""
    effort = hi.demos.Effort(num_updates=updates)
    demos = hi.demos.collect(Parking(), 60, effort=effort)
    result = hi.learn(
        Parking(),
        demos,
        steps=steps,
        reward="polynomial",  # A few numbers, for a simple task.
        trust_region=False,  # No single step can be judged: PPO is noisy.
        step_kl=3.0,
        learning_rate=0.5,
    )
    print(result)
    found = hi.evaluate(result, seeds=1, budget=budget)
    for name in ("expert_return", "env_return", "hard_return"):
        print(f"{name:14} {found[name]['mean']:8.2f}")
    return found


if __name__ == "__main__":
    main()
