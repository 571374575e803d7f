"""When do workers pay? An environment that takes 5 ms a step, on 1, 2 and 4 of them.

One environment waits for 5 ms (a simulator on another machine), one computes for 5 ms
(a simulator on a core of its own, if there is one), one takes no time at all. Each
update is 16 steps in 16 environments with a policy of 2 x 64 units. Shown are the steps
a second over those of this process alone, in the same turn; the same when workers are
asked for every step instead of once an update; and the bytes that go to and fro.

    python benchmarks/workers.py --repeats 2
    python benchmarks/workers.py --ray --json workers.json
"""

import argparse
import contextlib
import json
import os
import pickle
import statistics
import time
from pathlib import Path
from typing import Any

import gymnasium
import jax.random as jr
import numpy as np
from gymnasium import spaces

from hyperirl.experiments import cluster
from hyperirl.policies import mlp_policy
from hyperirl.worlds import SteppedWorld, make_world
from hyperirl.worlds.engine import Paused
from hyperirl.worlds.workers import pack

NUM_ENVS, NUM_STEPS = 16, 16
SECONDS = 0.005


class Slow(gymnasium.Env):
    """Sees eleven numbers, as a hopper does; a step takes its time."""

    observation_space = spaces.Box(-1, 1, (11,), np.float64)
    action_space = spaces.Box(-1, 1, (3,))

    def __init__(self, kind: str):
        self.kind = kind

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.uniform(-1, 1, 11), {}

    def step(self, action):
        if self.kind == "waits":
            time.sleep(SECONDS)
        if self.kind == "computes":
            end = time.thread_time() + SECONDS
            while time.thread_time() < end:
                pass
        return self.np_random.uniform(-1, 1, 11), 0.0, False, False, {}


def world_of(kind: str, workers: int, ray: bool) -> SteppedWorld:
    """A world of slow environments, which is ready to act."""
    return make_world(lambda: Slow(kind), horizon=100, workers=workers, ray=ray)


def seconds(world: SteppedWorld, policy: Any, actors: Any, calls: int) -> float:
    """What an update takes, if the workers are asked so many times for its steps."""
    began = time.perf_counter()
    for call in range(calls):
        key = jr.fold_in(jr.key(1), call)
        actors, _ = world.act(policy, actors, NUM_STEPS // calls, key=key)
    return time.perf_counter() - began


def curve(kind: str, places: list[tuple[str, int, bool]], repeats: int) -> list[dict]:
    """Rates over those of this process, for each place; turn by turn."""
    worlds = [world_of(kind, workers, ray) for _, workers, ray in places]
    space = worlds[0].action_space
    policy = mlp_policy(11, space, hidden=(64, 64), squash=True, key=jr.key(0))
    actors = [world.start(NUM_ENVS, key=jr.key(2)) for world in worlds]
    taken: dict[tuple[int, int], list[float]] = {}
    for turn in range(repeats + 1):
        for i, world in enumerate(worlds):
            for calls in (1, NUM_STEPS):
                found = seconds(world, policy, actors[i], calls)
                if turn:  # The first compiles.
                    taken.setdefault((i, calls), []).append(found)
    rows = []
    for i, (place, workers, _) in enumerate(places):
        times = [
            [
                base / mine
                for base, mine in zip(taken[0, 1], taken[i, calls], strict=True)
            ]
            for calls in (1, NUM_STEPS)
        ]
        rows.append(
            {
                "environment": kind,
                "place": place,
                "workers": workers,
                "update_seconds": statistics.median(taken[i, 1]),
                "times_as_fast": [
                    min(times[0]),
                    statistics.median(times[0]),
                    max(times[0]),
                ],
                "asked_every_step": statistics.median(times[1]),
            }
        )
        print(json.dumps(rows[-1]), flush=True)
    return rows


def bytes_an_update() -> dict[str, int]:
    """What goes to four workers and comes back from them, all together."""
    world = world_of("is quick", 0, False)
    policy = mlp_policy(
        11, world.action_space, hidden=(64, 64), squash=True, key=jr.key(0)
    )
    actors = world.start(NUM_ENVS, key=jr.key(2))
    packed = pack(policy)
    _, batch = world.act(policy, actors, NUM_STEPS, key=jr.key(1))
    arrays = [x for x in vars(batch).values() if x is not None]
    paused = Paused({}, np.asarray(actors.times))
    return {
        "policy_arrays_to_each": sum(array.nbytes for array in packed.arrays),
        "policy_frame_to_each": len(packed.frame),
        "rest_of_a_call": len(pickle.dumps((paused, NUM_STEPS, world._rules()))),
        "batch_from_all": sum(np.asarray(array).nbytes for array in arrays),
        "steps": NUM_ENVS * NUM_STEPS,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--ray", action="store_true", help="Ray's actors, too")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    places = [("this process", 0, False)]
    places += [("processes", workers, False) for workers in (1, 2, 4)]
    running = contextlib.nullcontext()
    if options.ray:
        places += [("ray", workers, True) for workers in (1, 2, 4)]
        running = cluster.running(None, print)
    # Both at the start and at the end: others may confine a process while it runs.
    result: dict[str, Any] = {"cores": len(os.sched_getaffinity(0)), "rows": []}
    result["bytes"] = bytes_an_update()
    print(json.dumps(result["bytes"]), flush=True)
    with running:
        for kind in ("waits", "computes", "is quick"):
            result["rows"] += curve(kind, places, options.repeats)
    result["cores_at_the_end"] = len(os.sched_getaffinity(0))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
