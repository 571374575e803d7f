"""How many trajectories does the hypergradient need on CartPole?

There is no exact answer there, so estimates are held against two long runs: the mean of
many adjoint estimates, and the mean of as many centred ones. The adjoint has a critic
that may be biased; the centred one has not, and much more noise. How far the two agree,
noise taken into account, bounds the critic's bias; the cosine of an estimate with the
adjoint's long run is its own noise.

    python benchmarks/cartpole_cosine.py --quick
    python benchmarks/cartpole_cosine.py --json cartpole_cosine.json
"""

import hyperirl  # isort: skip  # noqa: F401  Sets JAX up before others import it.

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.flatten_util import ravel_pytree

import _timing
from hyperirl._jax import enable_compilation_cache
from hyperirl.experiments.numbers import over_seeds
from hyperirl.learning import learn, set_up
from hyperirl.learning.setup import make_learner
from hyperirl.options import Options
from hyperirl.rollout import rollout

CROSSES = "raw", "centred", "adjoint"
LONG = "centred", "adjoint"  # Of which there are long runs...
BATCH = 512  # ...in batches of so many trajectories.


@eqx.filter_jit
def estimate(learner, policy, reward, num_episodes: int, key):
    """One hypergradient as a flat vector."""
    agent = rollout(learner.environment, policy, num_episodes, key=key)
    found = learner.estimator(policy, reward, learner.train, agent, learner.problem)
    return ravel_pytree(found.h)[0].astype(jnp.float64)


def learners(steps: int) -> dict:
    """The parts of the run, with each of the cross products."""
    said = {cross: Options(steps=steps, cross=cross) for cross in CROSSES}
    make = lambda options: make_learner(set_up("cartpole", None, options))
    return {cross: make(options) for cross, options in said.items()}


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def run(steps: int, num_batches: int, sizes: tuple[int, ...], repeats: int) -> dict:
    """Cosines by number of trajectories, at the reward of a run after some steps."""
    result = learn("cartpole", steps=steps, progress=False)
    assert result.reward is not None
    known, reward = learners(steps), result.reward.soft

    def draw(cross: str, size: int, number: int, seed: int) -> np.ndarray:
        key = jr.key(seed)
        parts = known[cross], result.policy, reward, size
        drawn = [estimate(*parts, jr.fold_in(key, i)) for i in range(number)]
        return np.stack([np.asarray(one) for one in drawn])

    batches = {cross: draw(cross, BATCH, num_batches, 1) for cross in LONG}
    long_run = {cross: found.mean(axis=0) for cross, found in batches.items()}
    rows = []
    for cross in CROSSES:
        for size in sizes:
            found = draw(cross, size, repeats, 2)
            to_long = [cosine(one, long_run["adjoint"]) for one in found]
            row = {"cross": cross, "trajectories": size, "cosine": over_seeds(to_long)}
            rows.append(row)
            print(
                f"{cross:>8}, {size:4} trajectories: cosine "
                f"{row['cosine']['mean']:.4f} ({min(to_long):.4f} to "
                f"{max(to_long):.4f})",
                flush=True,
            )
    halves = lambda found: found.reshape(2, -1, found.shape[1]).mean(axis=1)
    own = {cross: cosine(*halves(found)) for cross, found in batches.items()}
    return {
        "steps": steps,
        "long_run_trajectories": BATCH * num_batches,
        "rows": rows,
        "cosine_of_long_runs": cosine(long_run["adjoint"], long_run["centred"]),
        "cosine_of_halves": own,
    }


def main() -> None:
    args = _timing.arguments(__doc__.splitlines()[0])
    enable_compilation_cache()
    if args.quick:
        results = run(3, 2, (16, 64), 3)
    else:
        results = run(30, 32, (16, 64, 256), 10)
    _timing.write(results, args.json)
    own = results["cosine_of_halves"]
    print(
        f"Long runs of {results['long_run_trajectories']:,} trajectories: adjoint and "
        f"centred have a cosine of {results['cosine_of_long_runs']:.4f}; two halves of "
        f"the adjoint's {own['adjoint']:.4f}, of the centred one's {own['centred']:.4f}"
    )
    at_64 = {
        r["cross"]: r["cosine"]["mean"]
        for r in results["rows"]
        if r["trajectories"] == 64
    }
    words = ", ".join(f"{cross} {value:.3f}" for cross, value in at_64.items())
    print(f"Cosine with the long run at 64 trajectories: {words}")


if __name__ == "__main__":
    main()
