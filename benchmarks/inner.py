"""How fast do the inner solvers train, against Stable-Baselines3 on the same machine?

PPO on CartPole: environment steps per second of training, and seconds to a mean return
of 475. SAC on LQR: seconds to within 5 % of the exact soft-optimal return, and the rate
of gradient updates at equal networks and batch, as a share of the machine's matrix
products. Compile time, cold and from the persistent cache, and what a second core adds.

And how quiet are they? Warm-started solves of PPO on one frozen CartPole reward, in the
outer loop's practice, end in policies whose held-out NLL scatters. `--scatter` reports
it, in percent above the expert's floor: mean, deviation, and the same for means of the
parameters of the last solves, and for other ways to solve. The reward is one that was
learned, or the true one if none is given.

The rival gets its own environment under `.cache/`, its tuned settings and one torch
thread (two are slower on tensors this small). Clocks of both stop during evaluations.

    python benchmarks/inner.py --quick
    python benchmarks/inner.py --json inner.json --figure inner.png
    python benchmarks/inner.py --scatter --reward runs/mine/reward --json scatter.json
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RIVAL = ROOT / ".cache" / "sb3"
GOAL = 475.0
LQR_MARGIN = 0.05
CARTPOLE: dict = dict(trace=0.98, critic_hidden=(64, 64))  # As in the outer loop.


# ---- Ours


def cartpole_curve(seed: int, budget: int) -> list[tuple[float, int, float]]:
    """(seconds, steps, mean return) until the goal, at a temperature of 0.01.

    The rival's tuned setting has no entropy bonus, so the temperature is kept low.
    """
    import hyperirl  # noqa: F401
    from hyperirl.environments import CartPole
    from hyperirl.inner import PPO, SolveBudget, train
    from hyperirl.problem import problem

    class Reached(Exception):
        pass

    curve: list[tuple[float, int, float]] = []

    def note(point):
        curve.append((point.seconds, point.steps, point.true_return))
        if point.true_return >= GOAL:
            raise Reached

    solver = PPO(
        num_envs=32, num_steps=64, learning_rate=4e-3, final_rate=1.0, **CARTPOLE
    )
    try:
        train(
            CartPole(),
            problem=problem(temperature=0.01, discount=0.98),
            solver=solver,
            budget=SolveBudget(steps=budget),
            seed=seed,
            updates_per_call=2,
            callback=note,
        )
    except Reached:
        pass
    return curve


def ours_to_goal(seeds: range, budget: int) -> dict:
    cartpole_curve(99, 1)  # Compiles.
    curves = [cartpole_curve(seed, budget) for seed in seeds]
    return {"curves": curves, "seconds_to_475": [_reached(c, GOAL) for c in curves]}


def ours_rate(repeats: int) -> dict:
    """Steps per second of PPO; tracing and compiling apart."""
    import jax
    import jax.numpy as jnp
    import jax.random as jr

    import hyperirl  # noqa: F401
    from hyperirl.environments import CartPole
    from hyperirl.inner import PPO, policy_for
    from hyperirl.inner.solver import _solve
    from hyperirl.problem import problem

    environment = CartPole()
    solver = PPO(learning_rate=1e-3, **CARTPOLE)
    policy = policy_for(environment, solver, key=jr.key(0))
    state = solver.init(environment, policy, key=jr.key(1))
    inputs = solver, environment, environment.reward, state, problem()
    begin = time.perf_counter()
    lowered = _solve.lower(*inputs, jnp.int32(10), jr.key(0))
    traced = time.perf_counter()
    lowered.compile()
    compiled = time.perf_counter()
    solve = lambda state, i: jax.block_until_ready(
        solver.solve(
            environment, environment.reward, state, problem(), 10, key=jr.key(i)
        )
    )
    state, report = solve(state, 0)
    rates, busy = [], []
    for i in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        state, report = solve(state, i + 1)
        rates.append(int(report.steps) / (time.perf_counter() - wall))
        busy.append(int(report.steps) / (time.process_time() - cpu))
    return {
        "steps_per_second": _spread(rates),
        "steps_per_cpu_second": _spread(busy),
        "trace_seconds": traced - begin,
        "compile_seconds": compiled - traced,
    }


def ours_sac(budget_seconds: float) -> dict:
    """Seconds until the soft return is within 5 % of the exact optimum, on LQR."""
    import jax
    import jax.random as jr

    import hyperirl  # noqa: F401
    from hyperirl import exact
    from hyperirl.environments import LQR
    from hyperirl.inner import SAC
    from hyperirl.policies import mlp_policy
    from hyperirl.problem import problem

    environment, solver = (
        LQR(max_action=5.0),
        SAC(learning_rate=3e-4, critic_rate=1e-3, final_rate=1.0),
    )
    policy = mlp_policy(
        environment.observation_size,
        environment.action_space,
        key=jr.key(0),
        squash=True,
        covariance="state",
        initial_log_scale=-1.5,
    )
    best = optimal_policy()
    target = mean_return(environment, best)
    state = solver.init(environment, policy, key=jr.key(1))
    solve = lambda state, i: jax.block_until_ready(
        solver.solve(
            environment, environment.reward, state, problem(), 250, key=jr.key(i)
        )
    )
    solve(state, 0)  # Compiles.
    curve, spent, steps, i = [], 0.0, 0, 0
    while spent < budget_seconds:
        begin, i = time.perf_counter(), i + 1
        state, report = solve(state, i)
        spent, steps = spent + time.perf_counter() - begin, steps + int(report.steps)
        found = mean_return(environment, state.policy)
        curve.append((spent, steps, found))
        if found >= target - LQR_MARGIN * abs(target):
            break
    goal = target - LQR_MARGIN * abs(target)
    gradients = 250 * solver.num_gradients * len(curve) / spent
    gain, scale = map(lambda x: x.tolist(), exact.lqr.gain_and_scale(best))
    return {
        "curve": curve,
        "target": target,
        "seconds": _reached(curve, goal),
        "gradient_updates_per_second": gradients,
        "optimal_gain": gain,
        "optimal_scale": scale,
    }


def optimal_policy():
    """The exact soft-optimal policy; it never comes near the limit of actions."""
    from hyperirl import exact
    from hyperirl.environments import LQR
    from hyperirl.problem import problem

    environment = LQR()
    reward = exact.lqr.true_reward(environment)
    return exact.lqr.soft_optimal_policy(environment, reward, problem())


def mean_return(environment, policy, num_episodes: int = 512) -> float:
    """Always from the same first states and with the same noise."""
    import jax.numpy as jnp
    import jax.random as jr

    from hyperirl.rollout import rollout

    episodes = rollout(environment, policy, num_episodes, key=jr.key(0))
    return float(jnp.mean(jnp.sum(episodes.rewards, axis=1)))


def ours_gradients(repeats: int) -> dict:
    """SAC's gradient updates per second with the rival's networks and batch."""
    import jax
    import jax.numpy as jnp
    import jax.random as jr

    import hyperirl  # noqa: F401
    from hyperirl.environments import LQR
    from hyperirl.inner import SAC
    from hyperirl.policies import mlp_policy
    from hyperirl.problem import problem

    environment = LQR(max_action=5.0)
    solver = SAC(num_envs=1, num_gradients=50, hidden=(256, 256), capacity=16_384)
    policy = mlp_policy(
        4,
        environment.action_space,
        key=jr.key(0),
        hidden=(256, 256),
        squash=True,
        covariance="state",
    )
    state = solver.init(environment, policy, key=jr.key(1))
    solve = lambda n: jax.block_until_ready(
        solver.solve(
            environment, environment.reward, state, problem(), n, key=jr.key(2)
        )
    )
    solve(0)
    rates = []
    for _ in range(repeats):
        begin = time.perf_counter()
        solve(0)
        report = time.perf_counter() - begin
        begin = time.perf_counter()
        solve(4)
        rates.append(4 * 50 / (time.perf_counter() - begin - report))
    size = 1024
    a = jr.normal(jr.key(0), (size, size), jnp.float32)
    product = jax.jit(lambda a: a @ a)
    jax.block_until_ready(product(a))
    flops = []
    for _ in range(10):
        begin = time.perf_counter()
        jax.block_until_ready(product(a))
        flops.append(2 * size**3 / (time.perf_counter() - begin))
    layer = lambda *sizes: sum(m * n for m, n in zip(sizes, sizes[1:], strict=False))
    q, pi = layer(6, 256, 256, 1), layer(4, 256, 256, 4)
    # Twins: targets forward, loss forward and backward, policy loss forward and back to
    # the action. Policy: forward for the targets, forward and backward for its loss.
    work = 2 * 256 * (2 * q * (1 + 3 + 2) + pi * (1 + 3))
    rate = statistics.median(rates)
    return {
        "gradient_updates_per_second": _spread(rates),
        "gemm_gflops": max(flops) / 1e9,
        "share_of_gemm": rate * work / max(flops),
    }


# ---- Scatter between solves

QUIETER: dict[str, tuple[int, dict]] = {  # Updates a solve, and settings of PPO.
    "as it is": (6, {}),
    "rates fall to zero": (6, dict(final_rate=0.0)),
    "a third of the rate": (6, dict(learning_rate=3e-4)),
    "a tenth of the rate": (6, dict(learning_rate=1e-4)),
    "a third of the rate, falls to zero": (
        6,
        dict(learning_rate=3e-4, final_rate=0.0),
    ),
    "four times the batch": (6, dict(num_envs=256)),
    "four times the updates": (24, {}),
    "four times the updates, rates fall to zero": (24, dict(final_rate=0.0)),
}


def scatter(
    name: str, path: Path | None, seed: int, warm_up: int, num_solves: int
) -> dict:
    """How the held-out NLL scatters between solves of one way to solve."""
    import jax
    import jax.numpy as jnp
    import jax.random as jr

    import hyperirl  # noqa: F401
    from hyperirl import demos, saving, tasks
    from hyperirl.hypergradient import policy_nll
    from hyperirl.inner import Exponential, Window, ppo_for
    from hyperirl.policies import mlp_policy
    from hyperirl.problem import problem
    from hyperirl.rewards import fit_normalizer

    updates, settings = QUIETER[name]
    environment, loaded = tasks.make("cartpole").environment, demos.load("cartpole")
    solver, half = ppo_for(environment, **settings), len(loaded.expert_nll) // 2
    shown, expert = loaded.trajectories[:half], loaded.trajectories[half:]
    practice = demos.starting_in(environment, shown, 0.7)
    reward = environment.reward if path is None else saving.load_reward(path).soft
    policy = mlp_policy(
        environment.observation_size,
        environment.action_space,
        key=jr.key(seed),
        hidden=(32, 32),
        normalizer=fit_normalizer(shown),
    )
    averages = {f"mean of {n}": Window(n) for n in (4, 8, 16)}
    averages |= {"exponential 0.9": Exponential(0.9)}
    nll = jax.jit(lambda policy: jnp.mean(policy_nll(policy, expert)))
    state = solver.init(practice, policy, key=jr.key(seed + 100))
    means = {kind: average.init(policy) for kind, average in averages.items()}
    found: dict[str, list[float]] = {"last": [], **{kind: [] for kind in averages}}
    for i in range(warm_up + num_solves):
        key = jr.fold_in(jr.key(seed + 200), i)
        state, _ = solver.solve(practice, reward, state, problem(), updates, key=key)
        if i < warm_up:
            continue
        found["last"].append(float(nll(state.policy)))
        for kind, average in averages.items():
            means[kind] = average.update(means[kind], state.policy)
            found[kind].append(float(nll(average.mean(means[kind], state.policy))))
    floor = float(jnp.mean(loaded.expert_nll[half:]))
    late = num_solves // 2  # Where every window is full.
    percent = {
        kind: [100 * (x / floor - 1) for x in values[late:]]
        for kind, values in found.items()
    }
    return {
        "steps_a_solve": updates * solver.steps_per_update,
        "floor": floor,
        "percent_above_floor": {
            kind: {
                "mean": statistics.mean(values),
                "deviation": statistics.stdev(values),
                "largest": max(values),
            }
            for kind, values in percent.items()
        },
    }


# ---- The rival, run by its own Python


def rival_ppo(seeds: range, budget: int) -> dict:
    """SB3's PPO with the tuned CartPole settings of its model zoo."""
    import gymnasium as gym
    import numpy as np
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    torch.set_num_threads(1)

    class Watch(BaseCallback):
        """Evaluates every 2,048 steps with the clock stopped."""

        def __init__(self):
            super().__init__()
            self.paused, self.curve = 0.0, []
            self.games = gym.make_vec("CartPole-v1", 64)

        def _on_training_start(self):
            self.began = time.perf_counter()

        def _on_step(self) -> bool:
            if self.num_timesteps % 2048:
                return True
            begin = time.perf_counter()
            seconds = begin - self.began - self.paused
            self.curve.append((seconds, self.num_timesteps, self._play()))
            self.paused += time.perf_counter() - begin
            return self.curve[-1][2] < GOAL

        def _play(self) -> float:
            observations, _ = self.games.reset(seed=self.num_timesteps)
            alive, total = np.ones(64, bool), np.zeros(64)
            while alive.any():
                actions, _ = self.model.predict(observations, deterministic=False)
                observations, rewards, ended, cut, _ = self.games.step(actions)
                total += np.where(alive, rewards, 0.0)
                alive &= ~(ended | cut)
            return float(total.mean())

    curves = []
    for seed in seeds:
        model = PPO(
            "MlpPolicy",
            make_vec_env("CartPole-v1", 8, seed=seed),
            n_steps=32,
            batch_size=256,
            gae_lambda=0.8,
            gamma=0.98,
            n_epochs=20,
            ent_coef=0.0,
            learning_rate=lambda left: 1e-3 * left,
            clip_range=lambda left: 0.2 * left,
            seed=seed,
            device="cpu",
        )
        watch = Watch()
        model.learn(budget, callback=watch)
        curves.append(watch.curve)
    rates = [steps / seconds for curve in curves for seconds, steps, _ in curve[-1:]]
    return {
        "curves": curves,
        "steps_per_second": _spread(rates),
        "seconds_to_475": [_reached(curve, GOAL) for curve in curves],
    }


def rival_sac(budget_seconds: float, gain: list, scale: list) -> dict:
    """SB3's SAC at a fixed entropy coefficient of 0.1, on the same LQR."""
    import gymnasium as gym
    import numpy as np
    import torch
    from stable_baselines3 import SAC
    from stable_baselines3.common.callbacks import BaseCallback

    torch.set_num_threads(1)
    A = np.array([[1, 0.1, 0, 0], [0, 1, 0, 0.02], [0, 0, 1, 0.1], [0, 0.02, 0, 1]])
    B = np.array([[0, 0], [0.1, 0], [0, 0], [0, 0.1]])
    Q = np.array([1, 0.1, 1, 0.1])

    class Regulator(gym.Env):
        observation_space = gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)
        action_space = gym.spaces.Box(-5.0, 5.0, (2,), np.float32)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.time = 0
            self.state = self.np_random.normal(size=4) * [1, 0.5, 1, 0.5]
            return self.state.astype(np.float32), {}

        def step(self, action):
            cost = self.state @ (Q * self.state) + 0.1 * action @ action
            noise = 1e-3**0.5 * self.np_random.normal(size=4)
            self.state = A @ self.state + B @ action + noise
            self.time += 1
            cut = self.time >= 100
            return self.state.astype(np.float32), -float(cost), False, cut, {}

    gain, scale, draw = np.array(gain), np.array(scale), np.random.default_rng(0)

    def play(games, act) -> float:
        """The mean return over 50 episodes, always the same ones."""
        totals = []
        for episode in range(50):
            observation, _ = games.reset(seed=episode)
            cut, total = False, 0.0
            while not cut:
                observation, reward, _, cut, _ = games.step(act(observation))
                total += reward
            totals.append(total)
        return float(np.mean(totals))

    optimal = lambda s: -gain @ s + scale @ draw.normal(size=2)
    target = play(Regulator(), optimal)
    goal = target - LQR_MARGIN * abs(target)

    class Watch(BaseCallback):
        def __init__(self):
            super().__init__()
            self.paused, self.curve, self.games = 0.0, [], Regulator()

        def _on_training_start(self):
            self.began = time.perf_counter()

        def _on_step(self) -> bool:
            if self.num_timesteps % 2000:
                return True
            begin = time.perf_counter()
            seconds = begin - self.began - self.paused
            act = lambda observation: self.model.predict(observation)[0]
            found = play(self.games, act)
            self.curve.append((seconds, self.num_timesteps, found))
            self.paused += time.perf_counter() - begin
            return found < goal and seconds < budget_seconds

    model = SAC("MlpPolicy", Regulator(), ent_coef=0.1, seed=0, device="cpu")
    watch = Watch()
    model.learn(10**7, callback=watch)
    seconds, steps, _ = watch.curve[-1]
    return {
        "curve": watch.curve,
        "target": target,
        "seconds": _reached(watch.curve, goal),
        "gradient_updates_per_second": steps / seconds,  # One a step.
    }


# ---- Running it


def _spread(values: list[float]) -> dict[str, float]:
    return {
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
    }


def _reached(curve: list, goal: float) -> float | None:
    """The seconds at which a curve first reaches a goal."""
    return next((seconds for seconds, _, value in curve if value >= goal), None)


TASKS: dict[str, Callable[..., dict]] = {
    "ours-goal": lambda seeds, budget: ours_to_goal(range(seeds), budget),
    "ours-rate": lambda repeats: ours_rate(repeats),
    "ours-sac": lambda seconds: ours_sac(seconds),
    "ours-gradients": lambda repeats: ours_gradients(repeats),
    "rival-ppo": lambda seeds, budget: rival_ppo(range(seeds), budget),
    "rival-sac": lambda seconds, gain, scale: rival_sac(seconds, gain, scale),
}


def child(task: str, *numbers, python: str = sys.executable, env=None, cores=None):
    """Runs a task in a process of its own; its last line is its result."""
    prefix = [] if cores is None else ["taskset", "-c", cores]
    command = [*prefix, python, __file__, "--task", task, json.dumps(numbers)]
    done = subprocess.run(
        command, env=os.environ | (env or {}), capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{task} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def rival_python() -> str:
    """Makes the rival's environment if it is not there."""
    python = RIVAL / "bin" / "python"
    if not (RIVAL / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", RIVAL], check=True)
        install = [python, "-m", "pip", "install", "--quiet"]
        # Torch first: left to itself pip would fetch gigabytes of CUDA.
        subprocess.run([*install, "torch==2.13.0"], check=True)
        subprocess.run([*install, "stable-baselines3", "gymnasium"], check=True)
        (RIVAL / "ready").touch()
    return str(python)


def run(quick: bool) -> dict:
    seeds, repeats = (1, 3) if quick else (5, 10)
    results: dict = {
        "machine": {
            "cores": os.cpu_count(),
            "processor": platform.processor() or platform.machine(),
            "load_before": os.getloadavg(),
        }
    }
    with tempfile.TemporaryDirectory() as cache:
        env = {
            "JAX_COMPILATION_CACHE_DIR": cache,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        cold = child("ours-rate", repeats, env=env)
        warm = child("ours-rate", repeats, env=env)
        results["ppo"] = warm | {
            "compile_seconds_cold": cold["compile_seconds"],
            "compile_seconds_cached": warm.pop("compile_seconds"),
        }
        if not quick:
            one = child("ours-rate", repeats, env=env, cores="0")
            results["ppo"]["steps_per_second_on_one_core"] = one["steps_per_second"]
        results["ppo"] |= child("ours-goal", seeds, 400_000, env=env)
    if quick and not (RIVAL / "ready").exists():
        print("Stable-Baselines3 is not installed under .cache/; skipping it.")
    else:
        python = rival_python()
        results["rival_ppo"] = child(
            "rival-ppo", seeds, 20_480 if quick else 200_000, python=python
        )
    if not quick:
        results["gradients"] = child("ours-gradients", repeats)
        results["sac"] = child("ours-sac", 120.0)
        best = results["sac"].pop("optimal_gain"), results["sac"].pop("optimal_scale")
        results["rival_sac"] = child("rival-sac", 300.0, *best, python=python)
    results["machine"]["load_after"] = os.getloadavg()
    return results


def run_scatter(quick: bool, reward: Path | None) -> dict:
    """Every way to solve, one after the other; `quick` has the first two."""
    names = list(QUIETER)[:2] if quick else list(QUIETER)
    sizes = (10, 16) if quick else (20, 32)
    results = {}
    for name in names:
        results[name] = scatter(name, reward, 0, *sizes)
        found = results[name]["percent_above_floor"]
        words = [
            f"{k} {v['mean']:.2f} ± {v['deviation']:.2f}" for k, v in found.items()
        ]
        print(f"{name}: {', '.join(words)} % above the floor", flush=True)
    return results


def figure(results: dict, path: Path) -> None:
    """Learning curves over wall-clock."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    kinds = (("ppo", "hyperirl", "C0"), ("rival_ppo", "Stable-Baselines3", "C1"))
    for kind, name, color in kinds:
        for i, curve in enumerate(results.get(kind, {}).get("curves", [])):
            seconds, _, values = zip(*curve, strict=True)
            label = name if i == 0 else None
            left.plot(seconds, values, color=color, alpha=0.8, label=label)
    left.axhline(GOAL, color="gray", lw=0.8, ls=":")
    left.set(xscale="log", xlabel="seconds of training", ylabel="mean return")
    left.set_title("PPO on CartPole, one line a seed")
    left.legend(frameon=False, loc="upper left")
    for kind, name, color in (("sac", *kinds[0][1:]), ("rival_sac", *kinds[1][1:])):
        if kind in results:
            seconds, _, values = zip(*results[kind]["curve"], strict=True)
            costs = [-value for value in values]
            right.plot(seconds, costs, color=color, marker=".", label=name)
    if "sac" in results:
        best = -results["sac"]["target"]
        right.axhline(best, color="gray", lw=0.8, ls=":", label="exact optimum")
    right.set(xscale="log", yscale="log", xlabel="seconds of training")
    right.set(ylabel="mean cost of an episode", title="SAC on LQR")
    if "sac" in results:
        right.legend(frameon=False)
    fig.savefig(path, dpi=130)


def headline(results: dict) -> str:
    ours = results["ppo"]["steps_per_second"]["median"]
    line = f"PPO on CartPole trains {ours:,.0f} steps/s"
    if "rival_ppo" not in results:
        return line
    rival = results["rival_ppo"]["steps_per_second"]["median"]
    times = results["ppo"]["seconds_to_475"], results["rival_ppo"]["seconds_to_475"]
    line += f", {ours / rival:.0f}x Stable-Baselines3"
    if all(None not in seconds for seconds in times):
        ratio = statistics.median(times[1]) / statistics.median(times[0])
        line += f"; {ratio:.0f}x less time to a return of 475"
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under a minute")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write results")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="learning curves")
    parser.add_argument("--scatter", action="store_true", help="only between solves")
    parser.add_argument("--reward", type=Path, metavar="FILE", help="to scatter on")
    parser.add_argument("--task", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.task:
        name, numbers = options.task
        print(json.dumps(TASKS[name](*json.loads(numbers))))
        return
    if options.scatter:
        results = run_scatter(options.quick, options.reward)
    else:
        results = run(options.quick)
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    if options.scatter:
        return
    if options.figure is not None:
        figure(results, options.figure)
    brief = {k: v for k, v in results["ppo"].items() if k != "curves"}
    print(json.dumps(brief, indent=1))
    print(headline(results))


if __name__ == "__main__":
    main()
