"""Runs to report on: what is in their rows, `learn` has written."""

import json

import numpy as np
import pytest

from hyperirl import demos
from hyperirl.learning import learn
from hyperirl.runs import RunFolder

STEPS = 60


@pytest.fixture(scope="session")
def learned(tmp_path_factory):
    """Runs `learn` into a folder, on a small tabular MDP that is solved exactly.

    The same settings give the same folder: it is for reading only.
    """
    home = tmp_path_factory.mktemp("learned")
    path = home / "tabular.npz"
    demos.save(demos.collect("tabular", 40, seed=0), path)

    def run(method="fisher", seed=0, steps=STEPS, **settings):
        name = "-".join(map(str, (method, seed, steps, *settings.values())))
        if not (home / name).exists():
            settings |= dict(seed=seed, steps=steps, agent_episodes=16)
            learn(
                "tabular",
                str(path),
                method,
                out=home / name,
                progress=False,
                **settings,
            )
        return home / name

    return run


# Only for how the cards are laid out; the numbers are of no run.
HAND_MADE_EVALUATION = {
    "true_reward": True,
    "policy_nll": {"mean": 173.1, "low": 171.9, "high": 174.4, "n": 20},
    "floor": {"mean": 171.0, "low": 169.5, "high": 172.2, "n": 20},
    "gap": 2.1,
    "gap_percent": {"mean": 1.23, "low": 0.6, "high": 1.9, "n": 20},
    "env_return": {"mean": 497.2, "low": 492.0, "high": 500.0, "n": 100},
    "expert_return": 499.1,
    "hard_return": {"mean": 431.5, "low": 402.0, "high": 455.0, "n": 4},
    "hard_true_return": {"mean": 488.0, "low": 481.0, "high": 496.0, "n": 4},
    "random_return": 22.4,
    "rank_corr": {"mean": 0.971, "low": 0.96, "high": 0.98, "n": 200},
    "rank_corr_per_step": 0.62,
    "rank_corr_constant": 0.55,
    "rank_corr_untrained": 0.12,
    "epic_distance": 0.31,
    "retraining_ratio": {"mean": 1.2, "low": 0.9, "high": 1.6, "n": 2},
    "transfer": {
        "pole twice as long": {"env_return": 471.0, "true_reward_return": 498.0},
        "gravity 15": {
            "env_return": {"mean": 450.0, "low": 430.0, "high": 470.0, "n": 3},
            "true_reward_return": {"mean": 490.0, "low": 485.0, "high": 495.0, "n": 3},
        },
    },
    "bc_nll": 175.9,
}


def _cartpole_picture():
    angles, velocities = np.linspace(-0.25, 0.25, 41), np.linspace(-2.5, 2.5, 41)
    y, x = np.meshgrid(velocities, angles, indexing="ij")
    learned = lambda push: -8 * (x + 0.1 * y) ** 2 + 0.4 * push * (x + 0.3 * y)
    true = (np.abs(x) < 0.2095).astype(float)
    random = np.random.default_rng(0)
    returns = random.uniform(10, 500, 200)
    return {
        "kind": "heatmaps",
        "x": {"name": "angle (rad)", "values": angles.tolist()},
        "y": {"name": "angular velocity (rad/s)", "values": velocities.tolist()},
        "panels": [
            {"title": f"{name}, push {side}", "group": name, "values": table.tolist()}
            for name, tables in (
                ("learned", (learned(-1), learned(1))),
                ("true", (true, true)),
            )
            for side, table in zip(("left", "right"), tables, strict=True)
        ],
        "scatter": {
            "x_name": "true return",
            "y_name": "learned return",
            "x": returns.tolist(),
            "y": (0.3 * returns + random.normal(0, 10, 200) - 40).tolist(),
            "groups": [("random", "noisy", "expert")[int(r // 167)] for r in returns],
        },
    }


_MATRICES = {
    "kind": "matrices",
    "panels": [
        {
            "title": f"{name} Q",
            "rows": ["position", "velocity"],
            "columns": ["position", "velocity"],
            "values": values,
        }
        for name, values in (
            ("learned", [[1.02, 0.05], [0.05, 0.11]]),
            ("true", [[1.0, 0.0], [0.0, -0.1]]),
        )
    ],
}


@pytest.fixture
def make_run(learned, tmp_path):
    """Makes run folders with the rows of real runs, and with whatever to lay out.

    Other settings are only written down: the page shows them and asks no more of them.
    """

    def make(
        name="first",
        *,
        steps=STEPS,
        method="fisher",
        seed=0,
        evaluation=HAND_MADE_EVALUATION,
        picture=None,
        **config,
    ):
        real = RunFolder.open(learned(method, seed, max(steps, STEPS)))
        command = ["hyperirl", "learn", "--seed", str(seed), "--out", name]
        config = real.config | config
        run = RunFolder.create(tmp_path / "runs" / name, config, command)
        lines = "".join(f"{json.dumps(row)}\n" for row in real.metrics()[:steps])
        (run.path / "metrics.jsonl").write_text(lines)
        if evaluation is not None:
            run.save_json("evaluation.json", evaluation)
        if picture is not None:
            run.save_json("picture.json", picture)
        return run.path

    return make


@pytest.fixture
def pictures():
    return {"heatmaps": _cartpole_picture(), "matrices": _MATRICES}
