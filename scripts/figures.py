"""Draws the figures of the pages, from results and runs.

    hyperirl learn --out runs/first && hyperirl evaluate runs/first
    hyperirl learn --env pendulum --out runs/pendulum && hyperirl evaluate runs/pendulum
    python scripts/figures.py --cartpole runs/first --pendulum runs/pendulum

Colors are chosen to be read on a light and on a dark ground. What is drawn from a run
is left as it is if no run is given.
"""

import argparse
import json
from pathlib import Path

import jax.random as jr
import matplotlib
import numpy as np

from hyperirl import exact, inner, tasks
from hyperirl.curvature import Explicit
from hyperirl.films import episode_film, play
from hyperirl.hypergradient import Adjoint, Centred, Raw, outer_gradient
from hyperirl.learning import subject_of
from hyperirl.lstd import input_normalizer, random_features
from hyperirl.problem import problem
from hyperirl.rollout import rollout
from hyperirl.runs import RunFolder
from hyperirl.scores import score_rows

matplotlib.use("Agg")
from matplotlib import pyplot as plt

DOCS = Path(__file__).parents[1] / "docs"
OUT = DOCS / "figures"
GREY, COLORS = "#7d8590", {"raw": "#d1605e", "centred": "#c9922a", "adjoint": "#3d85c6"}
STYLE = {
    "axes.edgecolor": GREY,
    "axes.labelcolor": GREY,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": GREY,
    "font.size": 10,
    "legend.frameon": False,
    "legend.labelcolor": GREY,
    "savefig.transparent": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "hyperirl",
    "text.color": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
}


def save(figure, name: str) -> None:
    """The same figure gives the same file."""
    figure.savefig(OUT / name, metadata={"Date": None} if name.endswith("svg") else {})
    plt.close(figure)
    print(f"Wrote {OUT / name}")


def cosine() -> None:
    """The estimators by number of trajectories: `cosine.svg`."""
    on_cartpole = json.loads((DOCS / "results/cartpole_cosine.json").read_text())
    lqr = json.loads((DOCS / "results/estimators/results.json").read_text())
    rows = [
        (row["cross"], row["episodes"], row["cosine"])
        for row in lqr["tables"][0]["rows"]
        if row["fisher"] == "sampled" and row["damping"] == 0.01
    ]
    cartpole = [
        (row["cross"], row["trajectories"], row["cosine"])
        for row in on_cartpole["rows"]
    ]
    figure, panels = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    titles = "LQR, against the exact gradient", "CartPole, against 16,384 trajectories"
    for axes, title, points in zip(panels, titles, (rows, cartpole), strict=True):
        for name, color in COLORS.items():
            own = sorted((n, c) for cross, n, c in points if cross == name)
            xs = [n for n, _ in own]
            low = [max(c["mean"] - c["low"], 0) for _, c in own]
            high = [max(c["high"] - c["mean"], 0) for _, c in own]
            means = [c["mean"] for _, c in own]
            axes.errorbar(xs, means, (low, high), color=color, marker="o", label=name)
        axes.set(xscale="log", xlabel="trajectories", ylabel="cosine", title=title)
        axes.set_xticks([16, 64, 256], ["16", "64", "256"])
        axes.minorticks_off()
        axes.axhline(1.0, color=GREY, linestyle=":", linewidth=1)
    panels[0].legend()
    save(figure, "cosine.svg")


def estimators() -> None:
    """What each estimator multiplies rewards by, along trajectories."""
    settings = problem(0.1, 0.99)
    env = tasks.make("lqr").environment
    closed = exact.require_closed_form(env)
    right = closed.true_reward()
    policy = closed.optimal_policy(right, settings)
    expert = rollout(env, policy, 32, key=jr.key(0))
    agent = rollout(env, policy, 64, key=jr.key(1))
    g = outer_gradient(policy, expert, settings)
    v = Explicit(damping=1e-3)(score_rows(policy, agent, settings), g).v
    features = random_features(
        input_normalizer(expert), env.action_space, key=jr.key(2), num_units=0
    )
    kinds = {"raw": Raw(), "centred": Centred(), "adjoint": Adjoint(features)}
    figure, panels = plt.subplots(
        1, 3, figsize=(8, 2.6), sharey=True, layout="constrained"
    )
    for axes, (name, cross) in zip(panels, kinds.items(), strict=True):
        weights = np.asarray(cross.weights(policy, agent, settings, v))
        axes.plot(weights[:12].T, color=COLORS[name], linewidth=0.8, alpha=0.8)
        axes.set(title=name, xlabel="step of the trajectory")
    panels[0].set_ylabel("weight of the reward")
    save(figure, "estimators.svg")


def reward(run: Path, name: str) -> None:
    """The learned reward beside the true one, as a run's evaluation drew it."""
    picture = json.loads((run / "picture.json").read_text())
    learned = [p for p in picture["panels"] if p["group"] == "learned"]
    true = [p for p in picture["panels"] if p["group"] != "learned"]
    panels = [*learned, *true[:1]]
    figure, many = plt.subplots(
        1, len(panels), figsize=(3.3 * len(panels), 3), layout="constrained"
    )
    x, y = picture["x"], picture["y"]
    for axes, panel in zip(np.atleast_1d(many), panels, strict=True):
        values = np.asarray(panel["values"], float)
        mesh = axes.pcolormesh(x["values"], y["values"], values, cmap="viridis")
        mesh.set_rasterized(True)
        axes.set(title=panel["title"], xlabel=x["name"], ylabel=y["name"])
        bar = figure.colorbar(mesh, ax=axes, shrink=0.8)
        bar.outline.set_edgecolor(GREY)
        seen = picture.get("seen")
        if seen:
            at = slice(None, None, max(1, len(seen["x"]) // 150))
            axes.plot(seen["x"][at], seen["y"][at], ".", color="white", markersize=2)
        axes.set_xlim(min(x["values"]), max(x["values"]))
        axes.set_ylim(min(y["values"]), max(y["values"]))
    save(figure, f"reward-{name}.png")


def likelihood(run: Path, name: str) -> None:
    """The held-out NLL of each step, with the expert's own as the floor."""
    rows = RunFolder.open(run).metrics()
    figure, axes = plt.subplots(figsize=(5, 2.8), layout="constrained")
    steps, losses = zip(*((row["step"], row["nll_valid"]) for row in rows), strict=True)
    axes.plot(steps, losses, color=COLORS["adjoint"])
    axes.axhline(rows[-1]["floor_valid"], color=GREY, linestyle=":", label="the expert")
    axes.set(xlabel="outer step", ylabel="held-out NLL, nats an episode")
    axes.legend()
    save(figure, f"nll-{name}.svg")


def film(run: Path, name: str, steps: int = 1_000_000) -> None:
    """An episode of a policy that was trained from scratch on the frozen reward."""
    subject = subject_of(RunFolder.open(run))
    trained = inner.train(
        subject.environment,
        subject.reward.soft,
        problem=subject.problem,
        budget=inner.SolveBudget(steps=steps),
    )
    episode = play(subject.environment, trained.policy, subject.reward, seed=0)
    path = OUT / f"fresh-{name}.gif"
    path.write_bytes(episode_film(subject.environment, episode, max_frames=60))
    print(f"Wrote {path}: {episode.num_steps} steps")


def main() -> None:
    """Draws what can be drawn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cartpole", type=Path, metavar="RUN")
    parser.add_argument("--pendulum", type=Path, metavar="RUN")
    args = parser.parse_args()
    plt.rcParams.update(STYLE)
    cosine()
    estimators()
    for name, run in (("cartpole", args.cartpole), ("pendulum", args.pendulum)):
        if run is not None:
            reward(run, name)
            likelihood(run, name)
            film(run, name)


if __name__ == "__main__":
    main()
