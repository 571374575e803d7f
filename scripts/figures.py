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

import jax
import jax.numpy as jnp
import jax.random as jr
import matplotlib
import numpy as np

from hyperirl import exact, inner, tasks
from hyperirl.curvature import Explicit
from hyperirl.environments import LQR
from hyperirl.exact import lqr as exact_lqr
from hyperirl.films import episode_film, play
from hyperirl.hypergradient import Adjoint, Centred, Raw, outer_gradient
from hyperirl.learning import subject_of
from hyperirl.lstd import input_normalizer, random_features
from hyperirl.problem import problem
from hyperirl.rewards import QuadraticReward
from hyperirl.rollout import rollout
from hyperirl.runs import RunFolder
from hyperirl.scores import score_rows

matplotlib.use("Agg")
from matplotlib import pyplot as plt

DOCS = Path(__file__).parents[1] / "docs"
OUT = DOCS / "figures"
GREY, COLORS = "#7d8590", {"raw": "#d1605e", "centred": "#c9922a", "adjoint": "#3d85c6"}
NATS = 20.0  # The length of natural steps.
SETTINGS = problem(0.1, 0.99)
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


def sketch() -> None:
    """What a sketch adds to the damping, and which answer it gives: `sketch.svg`."""
    found = json.loads((DOCS / "results/sketch-size/results.json").read_text())
    rows = {
        int(row["solver"].removeprefix("m = ")): row
        for row in found["tables"][-1]["rows"]
        if row["solver"].startswith("m = ")
    }
    sizes = list(rows)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
    added = [1000 * row["delta"]["mean"] for row in rows.values()]
    left.plot(sizes, added, marker="o", color=COLORS["centred"])
    left.set(title="what the sketch adds", ylabel="times the damping asked for")
    for key, label, color in (
        ("cosine", "with the answer asked for", COLORS["raw"]),
        ("damped_cosine", "with that at its own damping", COLORS["adjoint"]),
    ):
        means = [row[key]["mean"] for row in rows.values()]
        right.plot(sizes, means, marker="o", color=color, label=label)
    right.set(title="what it answers", ylabel="cosine", ylim=(0.6, 1.02))
    right.legend()
    for axes in (left, right):
        axes.set(xscale="log", xlabel="rows of the sketch")
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.minorticks_off()
    save(figure, "sketch.svg")


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


def natural() -> None:
    """Plain and natural steps on a reward with two parameters, both exact."""
    env = LQR()
    true = exact_lqr.true_reward(env)

    def reward(c: jax.Array) -> QuadraticReward:
        """Costs of state and action, `exp(c)` times the true ones."""
        state, action = jnp.exp(c / 2)
        return QuadraticReward(true.state_root * state, true.action_root * action)

    policy = lambda c: exact_lqr.soft_optimal_policy(env, reward(c), SETTINGS)
    seen = exact_lqr.moments(env, policy(jnp.zeros(2)), SETTINGS.discount)
    least = exact_lqr.negative_log_likelihood(policy(jnp.zeros(2)), seen)
    loss = jax.jit(lambda c: exact_lqr.negative_log_likelihood(policy(c), seen) - least)
    slope = jax.jit(jax.grad(loss))

    def moved(c: jax.Array, start: jax.Array) -> jax.Array:
        """Nats between the policies of two rewards, over the expert's states."""
        return exact_lqr.divergence(policy(start), policy(c), seen)

    metric = jax.jit(lambda c: jax.hessian(moved)(c, c))
    start = jnp.asarray([2.0, -0.5])

    def path(step) -> np.ndarray:
        places = [start]
        for _ in range(8):
            places += [places[-1] - step(places[-1])]
        return np.asarray(places)

    def plain(c: jax.Array) -> jax.Array:
        return 0.4 * slope(c) / jnp.linalg.norm(slope(c))

    def in_nats(c: jax.Array) -> jax.Array:
        """At most `NATS` long."""
        G = metric(c)
        d = jnp.linalg.solve(G, slope(c))
        return d * jnp.minimum(1.0, jnp.sqrt(2 * NATS / (d @ G @ d)))

    def border(c: np.ndarray) -> np.ndarray:
        """Where steps from there have moved the policy by `NATS`."""
        angles = np.linspace(0, 2 * np.pi, 60)
        circle = np.sqrt(2 * NATS) * np.stack([np.cos(angles), np.sin(angles)])
        root = np.linalg.cholesky(np.linalg.inv(np.asarray(metric(jnp.asarray(c)))))
        return c[:, None] + root @ circle

    xs, ys = np.linspace(-1.2, 2.6, 60), np.linspace(-1.6, 2.2, 60)
    grid = jnp.asarray(np.stack(np.meshgrid(xs, ys), -1).reshape(-1, 2))
    values = np.asarray(jax.lax.map(loss, grid)).reshape(60, 60)
    figure, axes = plt.subplots(figsize=(5, 3.6), layout="constrained")
    lines = axes.contour(
        xs, ys, values, levels=[0.3, 1, 3, 10, 30, 60], colors=GREY, linewidths=0.7
    )
    axes.clabel(lines, fontsize=7, fmt="%g nats")
    for name, step, color in (
        ("steps of one length", plain, COLORS["raw"]),
        ("natural steps of at most 20 nats", in_nats, COLORS["adjoint"]),
    ):
        places = path(step)
        axes.plot(*places.T, marker=".", color=color, label=name)
        if step is in_nats:
            for c in places[:4]:
                axes.fill(*border(c), color=color, alpha=0.15, linewidth=0)
        print(name, [round(float(loss(jnp.asarray(c))), 3) for c in places])
    axes.plot(
        0,
        0,
        marker="*",
        color=GREY,
        markersize=12,
        linestyle="none",
        label="the true reward",
    )
    axes.set(
        xlabel="log cost of states",
        ylabel="log cost of actions",
        title="loss above its least",
    )
    axes.legend(fontsize=7, loc="upper right")
    save(figure, "natural.svg")


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
    sketch()
    estimators()
    natural()
    for name, run in (("cartpole", args.cartpole), ("pendulum", args.pendulum)):
        if run is not None:
            reward(run, name)
            likelihood(run, name)
            film(run, name)


if __name__ == "__main__":
    main()
