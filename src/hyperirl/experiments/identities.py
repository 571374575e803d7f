"""The propositions, checked numerically: nothing is sampled but the problems.

Random finite MDPs and linear systems, in `float64`, against exact answers.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from hyperirl.environments import LQR, Tabular, random_lqr
from hyperirl.exact import lqr as exact_lqr
from hyperirl.exact import tabular as exact_tabular
from hyperirl.experiments import figures
from hyperirl.experiments.cell import Cell, Result
from hyperirl.experiments.outcome import Outcome, Table
from hyperirl.experiments.reproduce import Budget, Done
from hyperirl.policies import softmax_table
from hyperirl.problem import Problem
from hyperirl.rewards import QuadraticReward
from hyperirl.rollout import rollout

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "The propositions, checked numerically"
ALONE = False

_STENCIL = (1 / 12, -2 / 3, 0.0, 2 / 3, -1 / 12)  # The derivative, to fourth order.
_PROBLEMS = ("tabular", "lqr")
_NAMES = {
    "hessian": "Hessian of L_inner at the optimum = α F",
    "hessian_elsewhere": "the same away from the optimum (not claimed)",
    "absorbing": "absorbing-state lemma: ending with chance 1 − γ = weights γ^t",
    "implicit": "implicit hypergradient = autodiff through the solution",
    "implicit_demos": "the same for 10 demonstrations of 20 steps",
    "differences": "autodiff through the solution = finite differences",
    "ml_irl": "= ML-IRL gradient, expert's behavior known",
    "ml_irl_demos": "the same for 10 demonstrations (not claimed)",
}


def cells(budget: Budget, seeds: int, done: Done) -> list[Cell]:
    """A random problem a cell; they are cheap, so there are at least three of each."""
    del budget, done
    return [
        Cell("identities", __name__, {"problem": problem, "seed": seed})
        for problem in _PROBLEMS
        for seed in range(max(seeds, 3))
    ]


def run(settings: Mapping[str, Any], folder: Path) -> Result:
    """The relative error of each identity, on one random problem."""
    del folder
    seed = settings["seed"]
    # The programs run in milliseconds; nearly all of the time goes into compiling.
    jax.config.update("jax_disable_most_optimizations", True)
    check = _check_tabular if settings["problem"] == "tabular" else _check_lqr
    rng = np.random.default_rng(seed)
    temperature, discount = rng.uniform(0.2, 1.5), rng.uniform(0.7, 0.95)
    problem = Problem(jnp.float64(temperature), jnp.float64(discount))
    errors = {name: float(error) for name, error in check(rng, problem).items()}
    return {"errors": errors, "temperature": temperature, "discount": discount}


def _error(actual: PyTree, expected: PyTree) -> Float[Array, ""]:
    """The largest difference, relative to the largest expected number."""
    actual, expected = ravel_pytree(actual)[0], ravel_pytree(expected)[0]
    return jnp.max(jnp.abs(actual - expected)) / jnp.max(jnp.abs(expected))


def _differences(loss, at: Float[Array, " n"], step: float = 1e-3):
    """The gradient of a loss by central differences."""

    def slope(direction: Float[Array, " n"]) -> Float[Array, ""]:
        values = jax.vmap(lambda k: loss(at + k * step * direction))
        return jnp.array(_STENCIL) @ values(jnp.arange(-2.0, 3)) / step

    return jax.vmap(slope)(jnp.eye(at.size))


def _check_tabular(rng: np.random.Generator, problem: Problem) -> dict[str, Any]:
    states, actions, gamma = 6, 3, problem.discount
    stop = rng.uniform(0, 0.1)  # The chance that an action ends the task.
    transitions = (1 - stop) * rng.dirichlet(np.ones(states), (states, actions))
    draw = lambda: jnp.asarray(rng.normal(size=(states, actions)))
    initial = jnp.asarray(rng.dirichlet(np.ones(states)))
    mdp = Tabular(transitions=jnp.asarray(transitions), rewards=draw(), initial=initial)
    reward, elsewhere = draw(), draw()
    key = jr.key(int(rng.integers(2**31)))

    @eqx.filter_jit
    def errors(mdp: Tabular, reward, elsewhere):
        solve = lambda r: exact_tabular.soft_value_iteration(mdp, r, problem).logits
        best, expert = solve(reward), solve(mdp.rewards)
        inner = lambda flat: exact_tabular.inner_loss(
            mdp, flat.reshape(reward.shape), reward, problem
        )
        hessian = lambda logits: jax.hessian(inner)(logits.reshape(-1))
        curvature = lambda logits: (
            problem.temperature * exact_tabular.fisher(mdp, logits, problem)
        )
        demos = rollout(mdp, softmax_table(expert), 10, key=key, horizon=20)
        known = exact_tabular.occupancy(mdp, expert, gamma)
        seen = exact_tabular.demo_weights(demos, gamma, actions)
        implicit = lambda w: exact_tabular.implicit_hypergradient(mdp, best, problem, w)
        truth = lambda w: exact_tabular.hypergradient(mdp, reward, problem, w)
        ml_irl = lambda w: exact_tabular.ml_irl_gradient(mdp, best, problem, w)
        loss = lambda flat: exact_tabular.outer_loss(
            solve(flat.reshape(reward.shape)), known
        )
        ended = _absorbing_visits(mdp, elsewhere, gamma)
        weighted = exact_tabular.occupancy(mdp, elsewhere, gamma)
        return {
            "hessian": _error(curvature(best), hessian(best)),
            "hessian_elsewhere": _error(curvature(elsewhere), hessian(elsewhere)),
            "absorbing": _error(ended, weighted),
            "implicit": _error(implicit(known), truth(known)),
            "implicit_demos": _error(implicit(seen), truth(seen)),
            "differences": _error(_differences(loss, reward.reshape(-1)), truth(known)),
            "ml_irl": _error(ml_irl(known), truth(known)),
            "ml_irl_demos": _error(ml_irl(seen), truth(seen)),
        }

    return errors(mdp, reward, elsewhere)


def _absorbing_visits(mdp: Tabular, logits: Array, discount: Array) -> Array:
    """Visits without weights, if from everywhere one may fall into a state for good."""
    states, actions = mdp.rewards.shape
    kept = discount * mdp.transitions
    moves = jnp.concatenate([kept, 1 - jnp.sum(kept, axis=-1, keepdims=True)], axis=-1)
    stay = jnp.zeros((1, actions, states + 1)).at[:, :, -1].set(1.0)
    world = Tabular(
        transitions=jnp.concatenate([moves, stay]),
        rewards=jnp.concatenate([mdp.rewards, jnp.zeros((1, actions))]),
        initial=jnp.concatenate([mdp.initial, jnp.zeros(1)]),
    )
    logits = jnp.concatenate([logits, jnp.zeros((1, actions))])
    steps = exact_tabular.step_probabilities(world, logits, 1000)
    return jnp.sum(steps, axis=0)[:states]


def _check_lqr(rng: np.random.Generator, problem: Problem) -> dict[str, Any]:
    lqr = random_lqr(rng)
    near = lambda size: np.eye(size) + 0.3 * rng.normal(size=(size, size))
    reward = QuadraticReward(jnp.asarray(near(3)), jnp.asarray(0.7 * near(2)))
    key = jr.key(int(rng.integers(2**31)))

    @eqx.filter_jit
    def errors(lqr: LQR, reward: QuadraticReward):
        solve = lambda r: exact_lqr.soft_optimal_policy(lqr, r, problem)
        best, expert = solve(reward), solve(exact_lqr.true_reward(lqr))
        theta, make = exact_lqr.parameters(best)
        inner = lambda t: exact_lqr.inner_loss(lqr, make(t), reward, problem)
        curvature = lambda t: (
            problem.temperature * exact_lqr.fisher(lqr, make(t), problem)
        )
        away = 0.9 * theta
        demos = rollout(lqr, expert, 10, key=key, horizon=20)
        known = exact_lqr.moments(lqr, expert, problem.discount)
        seen = exact_lqr.demo_moments(demos, problem.discount)
        args = lqr, best, reward, problem
        implicit = lambda m: exact_lqr.implicit_hypergradient(*args, m)
        truth = lambda m: exact_lqr.hypergradient(lqr, reward, problem, m)
        ml_irl = lambda m: exact_lqr.ml_irl_gradient(*args, m)
        phi, unravel = ravel_pytree(reward)
        loss = lambda phi: exact_lqr.negative_log_likelihood(solve(unravel(phi)), known)
        return {
            "hessian": _error(curvature(theta), jax.hessian(inner)(theta)),
            "hessian_elsewhere": _error(curvature(away), jax.hessian(inner)(away)),
            "implicit": _error(implicit(known), truth(known)),
            "implicit_demos": _error(implicit(seen), truth(seen)),
            "differences": _error(_differences(loss, phi), truth(known)),
            "ml_irl": _error(ml_irl(known), truth(known)),
            "ml_irl_demos": _error(ml_irl(seen), truth(seen)),
        }

    return errors(lqr, reward)


def summarize(cells: Sequence[Cell], done: Done) -> Outcome:
    """The largest error of each identity over the random problems."""
    rows = []
    for name, words in _NAMES.items():
        row: dict[str, Any] = {"identity": words}
        for problem in _PROBLEMS:
            errors = _errors(cells, done, problem, name)
            row[problem] = max(errors) if errors else None
        rows.append(row)
    headings = {"identity": "identity", "tabular": "finite MDPs", "lqr": "LQR"}
    count = {p: len(_errors(cells, done, p, "hessian")) for p in _PROBLEMS}
    notes = [
        f"Largest relative error over {count['tabular']} random MDPs (6 states, 3 "
        f"actions) and {count['lqr']} random linear systems (3 states, 2 actions), "
        "temperatures in [0.2, 1.5], discounts in [0.7, 0.95], float64.",
        "What the paper does not claim is expected to fail, and does: away from the "
        "optimum the Hessian is not α F, and with finite demonstrations ML-IRL is not "
        "the gradient of their likelihood, while the implicit one still is.",
    ]
    table = Table("Largest relative error (the paper proves 0)", headings, rows)
    draw = lambda figure: _draw(figure, cells, done)
    return Outcome([table], draw, (8.0, 3.6), notes)


def _errors(cells: Sequence[Cell], done: Done, problem: str, name: str) -> list[float]:
    found = [
        done[cell.id]["errors"].get(name)
        for cell in cells
        if cell.id in done and cell.settings["problem"] == problem
    ]
    return [error for error in found if error is not None]


def _draw(figure: "Figure", cells: Sequence[Cell], done: Done) -> None:
    axes = figure.subplots()
    for index, problem in enumerate(_PROBLEMS):
        for place, name in enumerate(reversed(_NAMES)):
            errors = _errors(cells, done, problem, name)
            axes.plot(
                errors,
                [place + 0.15 * (1 - 2 * index)] * len(errors),
                figures.MARKS[index],
                color=figures.COLORS[index],
                markersize=4.5,
                linestyle="none",
                label=("finite MDPs", "LQR")[index] if place == 0 else None,
            )
    axes.set_yticks(range(len(_NAMES)), list(reversed(_NAMES.values())), fontsize=7.5)
    axes.set(xscale="log", xlabel="relative error, one mark for each problem")
    axes.legend(loc="center")
