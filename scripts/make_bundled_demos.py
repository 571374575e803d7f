"""Makes the demonstrations in `src/hyperirl/demos/data`.

    python scripts/make_bundled_demos.py             # all of them
    python scripts/make_bundled_demos.py lqr         # only some

Nothing is random but the seed, so a second run on the same machine writes the same
files. Sizes are chosen to stay below 600 kB each; docs/demos.md has the numbers.
"""

import argparse
from pathlib import Path

import hyperirl  # noqa: F401  Sets JAX up before others import it.
from hyperirl import demos
from hyperirl._jax import enable_compilation_cache

EPISODES = {"cartpole": 60, "cartpole-fixed": 60, "lqr": 128, "pendulum": 96}
DATA = Path(demos.__file__).parent / "data"


def make(name: str) -> None:
    """Collects and writes the demonstrations of one environment."""
    show = lambda done, words: print(f"{name}: {done:4.0%} {words}", flush=True)
    made = demos.collect(
        name, EPISODES[name], seed=0, effort=demos.THOROUGH, on_progress=show
    )
    path = DATA / f"{name}.npz"
    demos.save(made, path, overwrite=True)
    print(f"{name}: {path.stat().st_size / 1000:.0f} kB", demos.summarize(made))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=EPISODES, choices=list(EPISODES))
    enable_compilation_cache()
    for name in parser.parse_args().names:
        make(name)
