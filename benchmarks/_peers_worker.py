"""One learner of `imitation`, or a reward of ours, and a fresh policy on its reward.

Run by `peers.py`, in an environment that has imitation and no hyperirl. Reads what to
do as JSON from its argument, prints what came out as JSON.
"""

import json
import sys
import time

import gymnasium
import numpy as np
import torch
from imitation.algorithms import bc
from imitation.algorithms.adversarial.airl import AIRL
from imitation.algorithms.adversarial.gail import GAIL
from imitation.data.types import TrajectoryWithRew
from imitation.rewards.reward_nets import BasicRewardNet, BasicShapedRewardNet
from imitation.rewards.reward_wrapper import RewardVecEnvWrapper
from imitation.util.networks import RunningNorm
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

from _sb3_worker import Curve, Paid, ppo, sac

NUM_EPISODES = 40
CONSTANT = 0.1  # CartPole's true reward is 1, a constant as well.


class TimeIsUp(Exception):
    """Stops a trainer that only knows of steps."""


def main() -> None:
    torch.set_num_threads(1)
    task = json.loads(sys.argv[1])
    rng = np.random.default_rng(task["seed"])
    torch.manual_seed(task["seed"])
    found, reward = {}, None
    if task["method"] == "hyperirl":
        sys.path.insert(0, task["exported"])
        from hyperirl_numpy import load_policy, load_reward

        reward = load_reward(f"{task['exported']}/reward.npz")
        policy = load_policy(f"{task['exported']}/policy.npz", seed=0)
        found = judged(task, policy.sample, policy.log_prob)
    elif task["method"] in ("bc", *ADVERSARIAL):
        policy, reward, found = learned(task, rng)
        found |= judged(task, *of_torch(policy))
    if task["method"] != "bc":
        found |= {"fresh": fresh(task, reward)}
    print(json.dumps(found))


def learned(task: dict, rng):
    """A policy and, perhaps, a reward, after so many seconds of learning."""
    demos = episodes(task["train"])
    venv = make_vec_env(task["env"], n_envs=8, seed=task["seed"])
    steps, start, used = 0, time.perf_counter(), time.process_time()
    spent = lambda: {"processor_seconds": time.process_time() - used}
    left = lambda: task["seconds"] - (time.perf_counter() - start)
    if task["method"] == "bc":
        trainer = bc.BC(
            observation_space=venv.observation_space,
            action_space=venv.action_space,
            demonstrations=demos,
            rng=rng,
        )
        while left() > 0:
            trainer.train(n_batches=200, progress_bar=False, log_interval=10**9)
            steps += 200
        return trainer.policy, None, spent() | {"batches": steps}
    learner, kind, net, settings = ADVERSARIAL[task["method"]]
    net = net(venv.observation_space, venv.action_space, **NORM)
    trainer = kind(
        demonstrations=demos,
        venv=venv,
        gen_algo=PPO(
            "MlpPolicy",
            venv,
            n_steps=256,
            gamma=task["learner_discount"],
            seed=task["seed"],
            device="cpu",
            **learner,
        ),
        reward_net=net,
        allow_variable_horizon=True,  # CartPole's episodes end when the pole falls.
        **settings,
    )

    def on_round(_):
        if left() <= 0:
            raise TimeIsUp

    try:
        trainer.train(10**9, callback=on_round)
    except TimeIsUp:
        steps = trainer.gen_algo.num_timesteps
    effort = spent() | {"environment_steps": steps}
    return trainer.policy, trainer.reward_test, effort


NORM = {"normalize_input_layer": RunningNorm}
# The settings of imitation's own tutorials, with rounds of 2,048 steps. There the
# discount is 0.95, and CartPole has episodes of a fixed length.
ADVERSARIAL = {
    "gail": (
        {
            "batch_size": 64,
            "ent_coef": 0.0,
            "learning_rate": 4e-4,
            "n_epochs": 5,
        },
        GAIL,
        BasicRewardNet,
        {
            "demo_batch_size": 1024,
            "gen_replay_buffer_capacity": 512,
            "n_disc_updates_per_round": 8,
        },
    ),
    "airl": (
        {
            "batch_size": 64,
            "ent_coef": 0.0,
            "learning_rate": 5e-4,
            "clip_range": 0.1,
            "vf_coef": 0.1,
            "n_epochs": 5,
        },
        AIRL,
        BasicShapedRewardNet,
        {
            "demo_batch_size": 2048,
            "gen_replay_buffer_capacity": 512,
            "n_disc_updates_per_round": 16,
        },
    ),
}


def episodes(path: str) -> list[TrajectoryWithRew]:
    """As imitation wants them."""
    stored = np.load(path)
    found, at = [], 0
    for i, length in enumerate(stored["lengths"]):
        found.append(
            TrajectoryWithRew(
                obs=stored["observations"][at + i : at + i + length + 1],
                acts=stored["actions"][at : at + length],
                infos=None,
                terminal=bool(stored["terminated"][i]),
                rews=np.zeros(length, np.float32),
            )
        )
        at += length
    return found


def of_torch(policy):
    """How a policy of SB3 acts, and how likely actions are."""
    policy.eval()

    def act(observations):
        return policy.predict(observations, deterministic=False)[0]

    def log_prob(observations, actions):
        with torch.no_grad():
            as_tensor = torch.as_tensor
            _, log_probs, _ = policy.evaluate_actions(
                as_tensor(observations), as_tensor(actions)
            )
        return log_probs.numpy()

    return act, log_prob


def judged(task: dict, act, log_prob) -> dict:
    """The true return of a policy as it is, and its NLL of held-out episodes."""
    env = gymnasium.make(task["env"])
    returns = []
    for episode in range(NUM_EPISODES):
        seen, _ = env.reset(seed=10_000 + episode)
        total, over = 0.0, False
        while not over:
            action = np.asarray(act(seen[None]))[0]
            if isinstance(env.action_space, gymnasium.spaces.Box):
                space = env.action_space
                action = np.clip(np.reshape(action, -1), space.low, space.high)
            else:
                action = int(action)
            seen, paid, terminated, truncated, _ = env.step(action)
            total, over = total + float(paid), terminated or truncated
        returns.append(total)
    held_out = episodes(task["test"])
    nll = [-float(np.sum(log_prob(e.obs[:-1], e.acts))) for e in held_out]
    return {"return": float(np.mean(returns)), "nll": float(np.mean(nll))}


def fresh(task: dict, reward) -> list:
    """A policy trained from scratch on a frozen reward; its true return on the way."""
    algorithm, num_envs = {"ppo": (ppo, 8), "sac": (sac, 1)}[task["algorithm"]]
    exported = task["method"] == "hyperirl"
    envs = make_vec_env(
        task["env"],
        n_envs=num_envs,
        seed=task["seed"],
        wrapper_class=(lambda env: Paid(env, reward)) if exported else None,
    )
    if task["method"] == "constant":
        envs = RewardVecEnvWrapper(envs, lambda seen, *_: np.full(len(seen), CONSTANT))
    elif reward is not None and not exported:
        envs = RewardVecEnvWrapper(envs, reward.predict_processed)
    curve = Curve(task["env"], task["every"], task["seed"])
    algorithm(envs, task["seed"], gamma=task["discount"]).learn(
        task["steps"], callback=curve
    )
    return curve.points


if __name__ == "__main__":
    main()
