"""Your own demonstrations: from arrays and tables to a learned reward.

A controller balances Gymnasium's CartPole. Its episodes are recorded, written as a
table, read again, and learned from. Run it: `python examples/own_demonstrations.py`.
"""

import pathlib
import tempfile

import gymnasium as gym
import numpy as np

import hyperirl as hi


def controller(observation: np.ndarray, chance: np.random.Generator) -> int:
    """Pushes toward the side to which the pole falls; errs now and then."""
    _, speed, angle, turning = observation
    push = 0.1 * speed + 4.0 * angle + turning
    return int(chance.random() < 1 / (1 + np.exp(-4.0 * push)))


def play(episodes: int, steps: int) -> tuple[list, list, list]:
    """Plain loops over Gymnasium, as they are found in any code of your own."""
    env, chance = gym.make("CartPole-v1"), np.random.default_rng(0)
    observations, actions, terminated = [], [], []
    for episode in range(episodes):
        seen, done, taken = [env.reset(seed=episode)[0]], False, []
        while not done and len(taken) < steps:
            taken.append(controller(seen[-1], chance))
            observation, _, done, _, _ = env.step(taken[-1])
            seen.append(observation)
        observations.append(np.array(seen, np.float32))
        actions.append(np.array(taken))
        terminated.append(done)
    return observations, actions, terminated


def main(
    method: str = "fisher", steps: int | None = None, episodes: int = 60
) -> hi.Result:
    """Records, writes, reads, learns."""
    observations, actions, terminated = play(episodes, 200)
    made = hi.demos.from_arrays(
        observations=observations,  # One more than actions, in each episode.
        actions=actions,
        terminated=terminated,  # The pole fell; or the episode was merely cut off.
        provenance=hi.demos.Provenance(environment="cartpole", expert="a controller"),
    )
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder) / "controller.csv"
        hi.demos.save(made, table)
        print(table.read_text().splitlines()[0])
        read = hi.demos.load(table)
    for oddity in hi.demos.oddities(read):
        print(f"Note: {oddity}")
    options = {} if steps is None else {"steps": steps}
    result = hi.learn("cartpole", read, method=method, **options)
    print(result)
    return result


if __name__ == "__main__":
    main()
