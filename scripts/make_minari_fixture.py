"""Writes the Arrow dataset by `minari` that the tests read.

Beside its folder there is a .json file: what `minari` itself reads from it. Arrow needs
pyarrow, which hyperirl does without, so this needs an environment of its own:

    python -m venv minari-env
    minari-env/bin/pip install "minari==0.5.4" h5py pillow pyarrow
    minari-env/bin/python scripts/make_minari_fixture.py
"""

import json
import os
import pathlib
import shutil
import tempfile

FIXTURES = pathlib.Path(__file__).parent.parent / "tests" / "demos" / "fixtures"


def write(name, environment, steps):
    """Two short episodes, and what is read from them."""
    import gymnasium as gym
    import minari

    make = gym.make(environment, max_episode_steps=steps)
    collector = minari.DataCollector(make, data_format="arrow")
    collector.action_space.seed(0)
    for seed in range(2):
        collector.reset(seed=seed)
        over = False
        while not over:
            action = collector.action_space.sample()
            *_, terminated, truncated, _ = collector.step(action)
            over = terminated or truncated
    made = collector.create_dataset(
        f"fixture/{name}-v0", algorithm_name="random", author="hyperirl"
    )
    read = [
        {
            field: getattr(episode, field).tolist()
            for field in (
                "observations",
                "actions",
                "rewards",
                "terminations",
                "truncations",
            )
        }
        for episode in made.iterate_episodes()
    ]
    shutil.rmtree(FIXTURES / f"minari-{name}", ignore_errors=True)
    shutil.copytree(made.storage.data_path, FIXTURES / f"minari-{name}" / "data")
    (FIXTURES / f"minari-{name}.json").write_text(json.dumps(read))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MINARI_DATASETS_PATH"] = folder
        write("cartpole-arrow", "CartPole-v1", 20)
        write("pendulum-arrow", "Pendulum-v1", 6)
