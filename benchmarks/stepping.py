"""How fast is CartPole with a policy in the loop, against Gymnasium's?

Every rival steps CartPole-v1 and, but for the two rows "stored actions", asks the same
2x64 policy for every action. The policy balances the pole, so that all steps are real
ones: an episode that is over costs our rollout time and counts for nothing. The row
"the policy alone" is the network on one batch, without any environment.

    python benchmarks/stepping.py --quick
"""

import hyperirl  # isort: skip  # noqa: F401  Sets JAX up before others import it.

import time
from collections.abc import Callable

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

import _timing
from hyperirl.environments import CartPole
from hyperirl.policies import Policy, mlp_policy
from hyperirl.rollout import rollout

NUM_ENVS, NUM_SYNC = 1024, 64
OURS, BUILT_IN, SYNC = "hyperirl x 1024", "built-in x 1024", "sync x 64"
BARE, ALONE = "stored actions", "the policy alone x 1024"


def balancing_policy() -> Policy:
    """A 2x64 network whose last layer is fitted to a controller that balances."""
    policy = mlp_policy(4, CartPole().action_space, key=jr.key(0))
    push = np.array([0.2, 0.5, 6.0, 1.5])
    x = np.random.default_rng(0).normal(0, [1.0, 1.0, 0.1, 1.0], (4000, 4))

    def hidden(observation):
        for layer in policy.network.layers[:-1]:
            observation = jnp.tanh(layer(observation))
        return observation

    features = np.asarray(jax.vmap(hidden)(jnp.asarray(x, jnp.float32)))
    weight = 20 * np.linalg.lstsq(features, x @ push, rcond=1e-6)[0]
    last = jnp.asarray(np.stack([-weight, weight]), jnp.float32)
    return eqx.tree_at(lambda p: p.network.layers[-1].weight, policy, last)


@eqx.filter_jit
def act(policy: Policy, observations, key, step):
    """Actions for a batch, with as little work as possible around the network."""
    logits = jax.vmap(policy.outputs)(observations)
    return jr.categorical(jr.fold_in(key, step), logits)


@eqx.filter_jit
def replay(environment: CartPole, states, actions):
    """Bare stepping, without a policy."""

    def step(states, actions):
        advance = lambda s, a: environment.advance(s, a, key=jr.key(0))
        states, terminated = jax.vmap(advance)(states, actions)
        return states, (states, terminated)

    return jax.lax.scan(step, states, actions)


@eqx.filter_jit
def ponder(policy: Policy, observations, num_steps: int):
    """The network and nothing else, on all observations in one batch."""

    def step(observations, _):
        logits = jax.vmap(policy.outputs)(observations)
        return observations + 1e-6 * logits[:, :1], None  # Needs the one before.

    return jax.lax.scan(step, observations, length=num_steps)


def gymnasium_loop(envs, choose: Callable, num_steps: int) -> Callable[[], None]:
    """A function that takes `num_steps` steps, going on where it stopped."""
    observations = envs.reset(seed=0)[0]

    def run() -> None:
        nonlocal observations
        for step in range(num_steps):
            actions = choose(observations, step)
            observations, _, _, _, _ = envs.step(actions)

    return run


def rivals(num_steps: int) -> dict[str, tuple[int, Callable[[], object]]]:
    """By name: the number of steps one call takes, and the call."""
    policy, environment, key = balancing_policy(), CartPole(), jr.key(1)
    built_in = lambda: gymnasium.make_vec(
        "CartPole-v1", num_envs=NUM_ENVS, vectorization_mode="vector_entry_point"
    )
    sync = gymnasium.make_vec(
        "CartPole-v1", num_envs=NUM_SYNC, vectorization_mode="sync"
    )
    # A plain number would be a constant of the program, compiled for each anew.
    ask = lambda observations, step: np.asarray(
        act(policy, observations, key, np.array(step))
    )
    stored = np.random.default_rng(0).integers(0, 2, (num_steps, NUM_ENVS))
    stored_on_device = jnp.asarray(stored, jnp.int32)
    states = jnp.zeros((NUM_ENVS, 4), jnp.float32)

    def play():
        return rollout(environment, policy, NUM_ENVS, key=key, horizon=num_steps)

    if not play().mask.all():
        raise RuntimeError("The policy of the benchmark let a pole fall.")
    many, few = NUM_ENVS * num_steps, NUM_SYNC * num_steps
    return {
        OURS: (many, play),
        BUILT_IN: (many, gymnasium_loop(built_in(), ask, num_steps)),
        SYNC: (few, gymnasium_loop(sync, ask, num_steps)),
        ALONE: (many, lambda: ponder(policy, states, num_steps)),
        f"{OURS}, {BARE}": (
            many,
            lambda: replay(environment, states, stored_on_device),
        ),
        f"{BUILT_IN}, {BARE}": (
            many,
            gymnasium_loop(built_in(), lambda _, step: stored[step], num_steps),
        ),
    }


def run(num_steps: int, repeats: int) -> dict:
    """Steps per second of each rival, and how many times faster ours is."""
    entries = rivals(num_steps)
    calls = {name: call for name, (_, call) in entries.items()}

    def rates(times: dict[str, list[float]]) -> dict[str, list[float]]:
        return {name: [entries[name][0] / t for t in times[name]] for name in times}

    def ratios(rates: dict[str, list[float]]) -> dict[str, dict[str, float]]:
        pairs = {
            BUILT_IN: (OURS, BUILT_IN),
            SYNC: (OURS, SYNC),
            ALONE: (OURS, ALONE),
            BARE: (f"{OURS}, {BARE}", f"{BUILT_IN}, {BARE}"),
        }
        quotients = lambda a, b: [
            x / y for x, y in zip(rates[a], rates[b], strict=True)
        ]
        return {name: _timing.spread(quotients(*pair)) for name, pair in pairs.items()}

    first, times = _timing.interleaved(calls, repeats)
    _, busy = _timing.interleaved(calls, repeats, clock=time.process_time)
    return {
        "num_steps": num_steps,
        "repeats": repeats,
        "first_call_seconds": first,
        "steps_per_second": {n: _timing.spread(r) for n, r in rates(times).items()},
        "ratios": ratios(rates(times)),
        "ratios_of_processor_time": ratios(rates(busy)),
    }


def main() -> None:
    args = _timing.arguments(__doc__.splitlines()[0])
    results = run(100, 7) if args.quick else run(200, 15)
    print(f"{'million steps per second':<34}{'median':>8}{'min':>8}{'max':>8}")
    for name, rate in results["steps_per_second"].items():
        print(f"{name:<34}" + "".join(f"{value / 1e6:8.3f}" for value in rate.values()))
    in_words = lambda ratio: "{:.2f}x ({:.2f} to {:.2f})".format(*ratio.values())
    print(f"{'times as fast as':<34}{'by the clock':>24}{'in processor time':>26}")
    for name, ratio in results["ratios"].items():
        busy = results["ratios_of_processor_time"][name]
        rival = f"{BUILT_IN}, {BARE}" if name == BARE else name
        print(f"{rival:<34}{in_words(ratio):>24}{in_words(busy):>26}")
    _timing.write(results, args.json)
    print(
        "hyperirl / Gymnasium's built-in vector CartPole, both with a 2x64 policy: "
        f"{in_words(results['ratios'][BUILT_IN])}; in processor time "
        f"{in_words(results['ratios_of_processor_time'][BUILT_IN])}"
    )


if __name__ == "__main__":
    main()
