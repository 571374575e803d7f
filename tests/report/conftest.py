import json
import math

import numpy as np
import pytest

from hyperirl.runs import RunFolder


def _row(step, random, method):
    """What one outer step might have recorded."""
    progress = math.exp(-step / 15)
    noise = lambda size: float(random.normal(0, size))
    return {
        "step": step,
        "seconds": 4.0 + 0.4 * step,
        "step_seconds": 4.0 if step == 1 else 0.4 + abs(noise(0.02)),
        "outer_loss": 60 + 30 * progress + noise(0.5),
        "nll_train": 170 + 100 * progress,
        "nll_valid": 172 + (100 if method == "fisher" else 140) * progress + noise(1),
        "floor_valid": 171.0,
        "best_nll_valid": 172 + 100 * progress,
        "true_return": 500 - 400 * progress + noise(5),
        "rank_corr": 0.97 - 0.5 * progress + noise(0.01),
        "inner_gap": 0.1 + 2 * progress * abs(1 + noise(0.3)),
        "inner_gap_error": 0.02,
        "inner_gradient_norm": 0.01 * math.exp(noise(0.5)),
        "entropy": 0.3 + 0.3 * progress,
        "policy_kl": None if step == 1 else 0.01 * progress,
        "snr": 20 * progress + 0.5 + abs(noise(0.3)),
        "h_norm": 3 * progress + 0.05,
        "ml_irl_cosine": 0.9 - 0.2 * (1 - progress) + noise(0.02),
        "damping": 10 ** (-3 + 2 * progress),
        "residual": 1e-7 * math.exp(noise(1)),
        "solver_iterations": 20 + int(abs(noise(5))),
        "effective_dimension": 40 + 30 * progress,
        "certificate": None,
        "agent_episodes": 64 if step < 30 else 128,
        "inner_updates": 10,
        "learning_rate": 0.1,
        "skipped": step in (7, 8),
    }


_EVALUATION = {
    "policy_nll": {"mean": 173.1, "low": 171.9, "high": 174.4, "n": 20},
    "floor": {"mean": 171.0, "low": 169.5, "high": 172.2, "n": 20},
    "gap": 2.1,
    "gap_percent": {"mean": 1.23, "low": 0.6, "high": 1.9, "n": 20},
    "env_return": {"mean": 497.2, "low": 492.0, "high": 500.0, "n": 100},
    "expert_return": 499.1,
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
def make_run(tmp_path):
    """Makes run folders that look as `hyperirl learn` leaves them."""

    def make(name="first", *, steps=60, evaluation=_EVALUATION, picture=None, **config):
        config = {"env": "cartpole", "method": "fisher", "seed": 0} | config
        config |= {"temperature": 0.1, "discount": 0.99, "hidden": [32, 32]}
        command = ["hyperirl", "learn", "--seed", str(config["seed"]), "--out", name]
        run = RunFolder.create(tmp_path / "runs" / name, config, command)
        random = np.random.default_rng(config["seed"])
        rows = [_row(step, random, config["method"]) for step in range(1, steps + 1)]
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
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
