"""How close does learning in a stepped world come to the speed of its simulator?

Hopper-v5: PPO with a policy of 2 x 64 units, environment steps a second of training,
beside the bare batch of simulations that takes the same actions from the same states,
and beside Stable-Baselines3's PPO, on one core and on all. CartPole-v1 through the
general way: acting, beside its bare vector environment with a compiled policy.

Rivals take turns, and ratios are taken within a turn.

    python benchmarks/worlds.py --repeats 2
    python benchmarks/worlds.py --python /path/to/sb3/bin/python --json worlds.json
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

NUM_ENVS, NUM_STEPS, NUM_UPDATES = 64, 128, 2

RIVAL = """
import sys, time, torch
torch.set_num_threads(int(sys.argv[1]))
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
num_envs, steps = int(sys.argv[2]), int(sys.argv[3])
learner = PPO("MlpPolicy", make_vec_env("Hopper-v5", num_envs), device="cpu",
              n_steps=2048 // num_envs, seed=0)
learner.learn(2048)
began = time.perf_counter()
learner.learn(steps, reset_num_timesteps=False)
print(learner.num_timesteps - 2048, time.perf_counter() - began)
"""


def rate(run, steps: int) -> float:
    began = time.perf_counter()
    run()
    return steps / (time.perf_counter() - began)


def hopper(num_threads: int, repeats: int) -> dict[str, list[float]]:
    """Steps a second of training, of acting, and of the simulations alone."""
    import jax
    import jax.random as jr
    import numpy as np

    from hyperirl.inner import PPO
    from hyperirl.policies import mlp_policy
    from hyperirl.problem import problem
    from hyperirl.rewards import RecordedReward
    from hyperirl.worlds.engine import Engine
    from hyperirl.worlds.mujoco import MujocoStepper
    from hyperirl.worlds.robots import Hopper
    from hyperirl.worlds.world import SteppedWorld

    make = lambda count: MujocoStepper(Hopper(), count, num_threads=num_threads)
    world = SteppedWorld(engine=Engine("Hopper-v5", make), horizon=1000)
    solver = PPO(num_envs=NUM_ENVS, num_steps=NUM_STEPS, critic_hidden=(64, 64))
    policy = mlp_policy(
        world.observation_size,
        world.action_space,
        covariance="state",
        squash=True,
        key=jr.key(0),
    )
    state = solver.init(world, policy, key=jr.key(1))
    stepper = make(NUM_ENVS)
    steps = NUM_ENVS * NUM_STEPS * NUM_UPDATES
    rates = {"train": [], "act": [], "bare": []}
    for turn in range(repeats + 1):
        key = jr.fold_in(jr.key(2), turn)

        def train(state=state, key=key):
            new, _ = solver.solve(
                world, RecordedReward(), state, problem(), NUM_UPDATES, key=key
            )
            return jax.block_until_ready(new)

        began = time.perf_counter()
        after = train()
        training = steps / (time.perf_counter() - began)
        began = time.perf_counter()
        for _ in range(NUM_UPDATES):
            _, batch = world.act(state.policy, state.actors, NUM_STEPS, key=key)
        acting = steps / (time.perf_counter() - began)
        actions = np.asarray(batch.actions)
        ends = np.asarray(batch.terminated | batch.truncated)
        first = {name: np.asarray(x) for name, x in state.actors.states.items()}

        def bare(first=first, actions=actions, ends=ends):
            """The same actions from the same states: nothing but the simulations."""
            rng = np.random.default_rng(0)
            for _ in range(NUM_UPDATES):
                stepper.load_state(first)
                for action, over in zip(actions, ends, strict=True):
                    stepper._controls[:] = action
                    stepper._batch.step(nstep=stepper.robot.frame_skip)
                    if over.any():
                        stepper.restart(np.flatnonzero(over), rng=rng)

        alone = rate(bare, steps)
        state = after
        if turn:  # The first compiles.
            for name, value in zip(rates, (training, acting, alone), strict=True):
                rates[name].append(value)
    return rates


def cartpole(repeats: int) -> dict[str, list[float]]:
    """Steps a second of acting, and of the vector environment with a policy."""
    import gymnasium
    import jax
    import jax.random as jr
    import numpy as np

    from hyperirl.policies import mlp_policy
    from hyperirl.worlds import make_world

    world = make_world("gym:CartPole-v1")
    policy = mlp_policy(world.observation_size, world.action_space, key=jr.key(0))
    actors = world.start(NUM_ENVS, key=jr.key(1))
    vector = gymnasium.make_vec(
        "CartPole-v1", NUM_ENVS, vectorization_mode="vector_entry_point"
    )
    vector.reset(seed=0)
    choose = jax.jit(lambda seen, noise: jax.vmap(policy.act)(seen, noise))
    draw = jax.jit(lambda key: jr.uniform(key, (NUM_STEPS, NUM_ENVS), np.float32))
    blocks = 8
    steps = blocks * NUM_ENVS * NUM_STEPS
    ended = []

    def act():
        nonlocal actors
        for block in range(blocks):
            key = jr.fold_in(jr.key(2), block)
            actors, _ = world.act(policy, actors, NUM_STEPS, key=key)

    def bare():
        seen, _ = vector.reset()
        for block in range(blocks):
            noise = np.asarray(draw(jr.fold_in(jr.key(2), block)))
            for row in noise:
                actions = np.asarray(choose(seen, row))
                seen, _, terminated, truncated, _ = vector.step(actions)
                ended.append(terminated | truncated)

    rates: dict[str, list[float]] = {"act": [], "bare": []}
    for turn in range(repeats + 1):
        for name, run in (("act", act), ("bare", bare)):
            ended.clear()
            measured = rate(run, steps)
            # The step after an end only restarts; ours does not count it either.
            taken = 1 - float(np.sum(ended)) / steps
            if turn:
                rates[name].append(measured * taken)
    return rates


def rival(python: str, cores: int, num_envs: int, steps: int) -> float:
    """Steps a second of Stable-Baselines3's PPO, with its default settings."""
    arguments = [python, "-c", RIVAL, str(cores), str(num_envs), str(steps)]
    environment = {**os.environ, "PYTHONPATH": "", "OMP_WAIT_POLICY": "PASSIVE"}
    done = subprocess.run(
        arguments,
        check=True,
        capture_output=True,
        text=True,
        env=environment,
        preexec_fn=lambda: _use(cores),
    )
    taken, seconds = done.stdout.split()[-2:]
    return int(taken) / float(seconds)


def _use(cores: int) -> None:
    available = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, available[:cores])


def child(what: str, cores: int, repeats: int) -> dict[str, list[float]]:
    """A part of the benchmark in a process of its own, on so many cores."""
    arguments = [sys.executable, __file__, "--part", what]
    arguments += ["--cores", str(cores), "--repeats", str(repeats)]
    done = subprocess.run(
        arguments,
        check=True,
        capture_output=True,
        text=True,
        preexec_fn=lambda: _use(cores),
    )
    return json.loads(done.stdout.splitlines()[-1])


def ratio(above: list[float], below: list[float]) -> list[float]:
    """Smallest, median and largest."""
    ratios = [a / b for a, b in zip(above, below, strict=True)]
    return [min(ratios), statistics.median(ratios), max(ratios)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--python", help="an interpreter with stable-baselines3")
    parser.add_argument("--rival-steps", type=int, default=8192)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--part", choices=["hopper", "cartpole"])
    parser.add_argument("--cores", type=int, default=1)
    options = parser.parse_args()
    if options.part == "hopper":
        print(json.dumps(hopper(options.cores, options.repeats)))
        return
    if options.part == "cartpole":
        print(json.dumps(cartpole(options.repeats)))
        return
    everything = len(os.sched_getaffinity(0))
    result: dict = {"cores": everything, "python": platform.python_version()}
    for cores in sorted({1, everything}):
        rates = child("hopper", cores, options.repeats)
        part = {f"{name}_steps_per_second": rates[name] for name in rates}
        part["train_of_bare"] = ratio(rates["train"], rates["bare"])
        part["act_of_bare"] = ratio(rates["act"], rates["bare"])
        if options.python:
            theirs = {
                str(num_envs): rival(
                    options.python, cores, num_envs, options.rival_steps
                )
                for num_envs in (1, 8)
            }
            part["sb3_steps_per_second_by_envs"] = theirs
            best = max(theirs.values())
            part["train_of_sb3"] = statistics.median(rates["train"]) / best
        result[f"hopper_on_{cores}"] = part
        print(json.dumps(part, indent=1), flush=True)
    rates = child("cartpole", everything, options.repeats)
    part = {f"{name}_steps_per_second": rates[name] for name in rates}
    part["bare_of_act"] = ratio(rates["bare"], rates["act"])
    result["cartpole"] = part
    print(json.dumps(part, indent=1))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
