"""How many times a second can a learned reward be called from Python?

A reward of CartPole's size (two hidden layers of 32), normalized, with its level: one
step at a time and in batches, by JAX and by NumPy alone; and a step of Gymnasium's
CartPole with and without the wrapper that pays it.

    python benchmarks/reward_calls.py --quick
"""

import hyperirl  # isort: skip  # noqa: F401  Sets JAX up before others import it.

import time
from collections.abc import Callable

import gymnasium
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import _timing
from hyperirl.export import numpy_reward
from hyperirl.networks import Normalizer
from hyperirl.rewards import StandaloneReward, mlp_reward
from hyperirl.spaces import Discrete
from hyperirl.wrappers import RewardWrapper, VectorRewardWrapper

BATCHES = (1, 100, 10_000, 1_000_000)


def learned() -> StandaloneReward:
    """What `hyperirl learn --env cartpole` learns, but for the numbers in it."""
    ones = jnp.ones(4, jnp.float32)
    normalizer = Normalizer(0 * ones, ones)
    reward = mlp_reward(4, Discrete(2), key=jr.key(0), normalizer=normalizer)
    return StandaloneReward(reward, 0.07)


def repeated(call: Callable, times: int) -> Callable[[], object]:
    def run() -> object:
        for _ in range(times - 1):
            call()
        return call()

    return run


def rivals(effort: int) -> dict[str, tuple[int, Callable[[], object]]]:
    """By name: how many steps one call is about, and the call."""
    reward, rng = learned(), np.random.default_rng(0)
    alone, entries = numpy_reward(reward), {}
    for size in BATCHES:
        x = rng.normal(size=(size, 4)).astype(np.float32)
        a = rng.integers(0, 2, size)
        if size == 1:
            x, a = x[0], a[0]
        difference = np.max(np.abs(alone(x, a) - np.asarray(reward(x, a))))
        if difference > 1e-5:
            raise RuntimeError(f"NumPy and JAX differ by {difference}.")
        for name, function, share in (("NumPy", alone, 1), ("JAX", reward, 10)):
            times = max(1, effort // size // share)
            call = lambda function=function, x=x, a=a: function(x, a)
            label = "one at a time" if size == 1 else f"batches of {size:,}"
            entries[f"{name}, {label}"] = size * times, repeated(call, times)
    return entries | stepping(reward, effort // 4)


def stepping(reward: StandaloneReward, times: int) -> dict:
    """Steps of Gymnasium's CartPole; it starts again when the pole has fallen."""
    plain = lambda: gymnasium.make("CartPole-v1")
    many = lambda: gymnasium.make_vec(
        "CartPole-v1", num_envs=1024, vectorization_mode="vector_entry_point"
    )

    def single(env) -> Callable[[], object]:
        env.reset(seed=0)

        def run() -> None:
            for step in range(times):
                if any(env.step(step % 2)[2:4]):
                    env.reset()

        return run

    def vector(env) -> Callable[[], object]:
        env.reset(seed=0)
        actions = np.random.default_rng(0).integers(0, 2, (100, 1024))

        def run() -> None:
            for row in actions:
                env.step(row)

        return run

    wrapped, wrapped_many = RewardWrapper(plain(), reward), VectorRewardWrapper
    return {
        "CartPole-v1, true reward": (times, single(plain())),
        "CartPole-v1, learned reward": (times, single(wrapped)),
        "1024 CartPoles, true reward": (102_400, vector(many())),
        "1024 CartPoles, learned reward": (
            102_400,
            vector(wrapped_many(many(), reward)),
        ),
    }


def run(effort: int, repeats: int) -> dict:
    entries = rivals(effort)
    calls = {name: call for name, (_, call) in entries.items()}
    _, times = _timing.interleaved(calls, repeats)
    _, busy = _timing.interleaved(calls, repeats, clock=time.process_time)

    def rates(times: dict[str, list[float]]) -> dict[str, dict[str, float]]:
        steps = {name: num for name, (num, _) in entries.items()}
        return {n: _timing.spread([steps[n] / t for t in times[n]]) for n in times}

    return {
        "repeats": repeats,
        "steps_per_second": rates(times),
        "steps_per_second_of_processor_time": rates(busy),
    }


def main() -> None:
    args = _timing.arguments(__doc__.splitlines()[0])
    results = run(2_000, 5) if args.quick else run(20_000, 11)
    print(f"{'steps a second':<34}{'median':>12}{'min':>12}{'max':>12}")
    for name, rate in results["steps_per_second"].items():
        print(f"{name:<34}" + "".join(f"{value:12,.0f}" for value in rate.values()))
    print(f"on {jax.devices()[0].platform}, repeats: {results['repeats']}")
    _timing.write(results, args.json)


if __name__ == "__main__":
    main()
