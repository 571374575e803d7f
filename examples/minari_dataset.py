"""Learn from a Minari dataset.

`python examples/minari_dataset.py DATASET ENV` reads a dataset of yours, an id or a
folder, and learns in an environment such as `gym:Hopper-v5`. Without arguments a
dataset is written first: that of the bundled CartPole demonstrations.
"""

import pathlib
import sys
import tempfile

import hyperirl as hi


def write_one(folder: str) -> str:
    """A dataset that Minari reads as well."""
    path = pathlib.Path(folder) / "cartpole-v0"
    hi.demos.save(hi.demos.load("cartpole"), path)
    return str(path)


def main(dataset: str, env: str, **options) -> hi.Result:
    """Reads, looks, learns."""
    demos = hi.demos.load(dataset)  # Reads files only; nothing is downloaded.
    print(f"{demos.num_episodes} episodes by {demos.provenance.expert}")
    for oddity in hi.demos.oddities(demos):
        print(f"Note: {oddity}")
    result = hi.learn(env, demos, **options)
    print(result)
    return result


if __name__ == "__main__":
    if len(sys.argv) == 3:
        main(sys.argv[1], sys.argv[2])
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(write_one(folder), "cartpole")
