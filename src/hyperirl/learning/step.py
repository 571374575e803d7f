"""One outer step, compiled in parts: solve, roll out, differentiate, update, look.

Natural steps may have a trust region: one that made the demonstrations less likely is
taken back, with the policy it led to, and the next one is shorter. Nothing that is not
finite ever reaches the parameters: such a step leaves the reward, the optimizer and the
inner solver as they were, and is counted.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from hyperirl.environments import AbstractWorld
from hyperirl.evaluation import policies_like
from hyperirl.hypergradient import Estimate, outer_loss, policy_nll
from hyperirl.inner import AbstractInnerSolver, SolveReport
from hyperirl.learning.challenging import Challenger, answer_to, duel
from hyperirl.learning.learner import Learner, LearnState, keep_best
from hyperirl.learning.rate import with_rate
from hyperirl.learning.trust import Solved, Trust, choose, judge
from hyperirl.metrics import StepMetrics
from hyperirl.networks import partition
from hyperirl.policies import AbstractPolicy
from hyperirl.programs import compiled
from hyperirl.rewards import AbstractReward
from hyperirl.rollout import rollout
from hyperirl.trajectories import Trajectories, steps_taken

_NUM_SHOWN = 8  # Whole episodes to look at, where it is segments that are learned from.


def outer_step(
    learner: Learner, state: LearnState, agent_episodes: int, done: Float[Array, ""]
) -> tuple[LearnState, StepMetrics, Trajectories]:
    """The next state, the numbers of this step, and whole episodes of the agent.

    A few programs, called one after the other: each part is compiled once, however
    often it is repeated, and as many cores as there are compile it.

    Args:
        learner: What stays the same.
        state: What changes.
        agent_episodes: Trajectories for the hypergradient; another number compiles.
        done: The share of the run that is over, for the learning rate.
    """
    inner, solve_key, agent_key, rival_key = _begin(learner, state, done)
    answer = _solve(learner, inner, state, solve_key)
    tried, trust = _try(learner, state, answer.inner)
    policy = (tried.solved if trust is None else trust.base).inner.policy

    def play(world: AbstractWorld, number: int, horizon: int | None) -> Trajectories:
        # Where it is not stepped by the host, the true reward is a function.
        stepped = world.is_stepped
        return rollout(
            world,
            policy,
            number,
            horizon=horizon,
            key=agent_key,
            record_rewards=stepped,
        )

    agent = play(learner.agents, agent_episodes, learner.segment)
    rival = _challenge(learner, state, agent_episodes, rival_key)
    new, metrics = _learn_from(learner, state, answer, tried, trust, agent, rival, done)
    if learner.segment is None:
        return new, metrics, agent
    return new, metrics, play(learner.environment, _NUM_SHOWN, None)


@compiled
def _begin(
    learner: Learner, state: LearnState, done: Float[Array, ""]
) -> tuple[AbstractInnerSolver, PRNGKeyArray, PRNGKeyArray, PRNGKeyArray]:
    """The inner solver for this step, and keys: to solve, to play, for a rival.

    The solver is told how fast the reward moves, where that is known.
    """
    inner = learner.inner
    if learner.natural is not None and learner.rate is not None:
        inner = inner.at_pace(learner.rate(done))
    solve_key, agent_key = jr.split(jr.fold_in(learner.key, state.step))
    return inner, solve_key, agent_key, jr.fold_in(agent_key, 1)


def _challenge(
    learner: Learner, state: LearnState, episodes: int, key: PRNGKeyArray
) -> Challenger | None:
    """Trains the challenger on the same reward, and lets it act."""
    if learner.challenge is None:
        return None
    train_key, act_key = jr.split(key)
    inner = learner.challenge.train(
        state.challenger, state.reward, learner.problem, key=train_key
    )
    world = learner.agents
    acted = rollout(
        world,
        inner.policy,
        episodes,
        horizon=learner.segment,
        key=act_key,
        record_rewards=world.is_stepped,
    )
    return Challenger(inner, acted)


class Answer(eqx.Module):
    """What the inner solver found."""

    inner: Any  # Its state.
    report: SolveReport
    num_updates: Int[Array, ""]


class Tried(eqx.Module):
    """The inner solution, and how likely it makes the held-out demonstrations."""

    solved: Solved
    nll: Float[Array, ""]


@compiled
def _try(learner: Learner, state: LearnState, inner: Any) -> tuple[Tried, Trust | None]:
    """Judges the inner solution, by the training demonstrations alone."""
    nll = jnp.mean(policy_nll(inner.policy, learner.valid))
    loss = outer_loss(inner.policy, learner.train, learner.problem)
    solved = Solved(loss.astype(jnp.float32), state.reward, inner)
    if state.trust is None:
        return Tried(solved, nll), None
    trust = judge(
        state.trust,
        solved,
        slack=learner.slack,
        grow=learner.grow,
        shrink=learner.shrink,
    )
    return Tried(solved, nll), trust


@compiled
def _learn_from(
    learner: Learner,
    state: LearnState,
    answer: Answer,
    tried: Tried,
    trust: Trust | None,
    agent: Trajectories,
    rival: Challenger | None,
    done: Float[Array, ""],
) -> tuple[LearnState, StepMetrics]:
    """Differentiates, and moves the reward."""
    inner, loss, nll = tried.solved.inner, tried.solved.loss, tried.nll
    solved = tried.solved if trust is None else trust.base
    policy = solved.inner.policy
    estimate, memory = learner.estimator.update(
        state.estimator, policy, solved.reward, learner.train, agent, learner.problem
    )
    checked = None
    if learner.check is not None:
        checked = learner.check.cosine(
            estimate.h, policy, solved.reward, learner.train, agent, learner.problem
        )
    h, found = estimate.h, None
    if rival is not None:
        challenger = rival.inner.policy, rival.trajectories
        found = duel(solved.reward, challenger, (policy, agent), learner.problem)
        h = answer_to(found, h, solved.reward, learner.train, rival, learner.problem)
        policy, agent = choose(found.won, challenger, (policy, agent))
    direction, trust = _direction(learner, solved.reward, trust, h, policy, agent)
    reward, moments = _update(learner, solved.reward, state, direction, done)
    changed = direction, loss, nll, partition((inner.policy, reward))[0]
    good = all_finite(changed)
    moved = LearnState(
        step=state.step + 1,
        reward=reward,
        moments=moments,
        inner=solved.inner,
        estimator=memory,
        trust=trust,
        challenger=None if rival is None else rival.inner,
        best=keep_best(state.best, nll, reward=state.reward, policy=inner.policy),
        agent_episodes=state.agent_episodes,
        snr=_running_mean(state.snr, estimate.diagnostics.snr),
        skipped=jnp.zeros_like(state.skipped),
    )
    stayed = eqx.tree_at(
        lambda s: (s.step, s.skipped), state, (state.step + 1, state.skipped + 1)
    )
    new = choose(good, moved, stayed)
    rate = jnp.asarray(jnp.nan) if learner.rate is None else learner.rate(done)
    metrics = StepMetrics(
        step=new.step,
        outer_loss=loss,
        nll_valid=nll,
        best_nll_valid=new.best.nll,
        inner_updates=answer.num_updates,
        agent_episodes=jnp.asarray(agent.num_episodes),
        soft_bellman_cosine=checked,
        challenger_gain=None if found is None else found.gain,
        challenger_won=None if found is None else found.won.astype(jnp.int32),
        learning_rate=rate,
        skipped=(~good).astype(jnp.int32),
        radius=None if trust is None else trust.radius,
        **_of_scale(inner.policy, learner.valid),
        **_of_inner(answer.report),
        **_of_estimate(estimate),
    )
    return new, metrics


def _direction(
    learner: Learner,
    reward: AbstractReward,
    trust: Trust | None,
    h: PyTree,
    policy: AbstractPolicy,
    agent: Trajectories,
) -> tuple[PyTree, Trust | None]:
    """What the optimizer descends on: the hypergradient, or the natural step."""
    if learner.natural is None:
        return h, trust
    radius = learner.radius if trust is None else trust.radius
    step, divergence = learner.natural(
        h, policy, reward, learner.train, agent, learner.problem
    )
    if trust is not None:
        length = jnp.minimum(radius, divergence.astype(radius.dtype))
        trust = eqx.tree_at(lambda t: t.moved, trust, length)
    scale = jnp.minimum(1.0, jnp.sqrt(radius / divergence))
    return jax.tree.map(lambda leaf: scale.astype(leaf.dtype) * leaf, step), trust


def _update(
    learner: Learner,
    reward: Any,
    state: LearnState,
    direction: PyTree,
    done: Float[Array, ""],
) -> tuple[Any, Any]:
    """A step of the optimizer."""
    params, rest = partition(reward)
    moments = state.moments
    if learner.rate is not None:
        moments = with_rate(moments, learner.rate(done))
    with jax.numpy_dtype_promotion("standard"):  # Adam mixes float and int.
        updates, moments = learner.optimizer.update(direction, moments, params)
    return eqx.combine(optax.apply_updates(params, updates), rest), moments


def _solve(
    learner: Learner, inner: AbstractInnerSolver, state: LearnState, key: PRNGKeyArray
) -> Answer:
    """Runs the inner solver, and again.

    The hypergradient is right only near the inner optimum, so the solver is run again
    while it is far from it. A gap that is not above its own noise is near.
    """
    solved, count = state.inner, 0
    while True:
        solved, report = inner.solve(
            learner.practice,
            state.reward,
            solved,
            learner.problem,
            learner.inner_updates,
            key=_numbered(key, jnp.asarray(count, jnp.int32)),
        )
        count += 1
        report, far = _is_far(learner, report)
        if not (learner.adaptive and count < learner.max_solves and bool(far)):
            num_updates = jnp.asarray(count * learner.inner_updates, jnp.int32)
            return Answer(solved, report, num_updates)


@compiled
def _is_far(
    learner: Learner, report: SolveReport
) -> tuple[SolveReport, Bool[Array, ""]]:
    """The report, in its types, and whether the gap is too large, beyond its noise."""
    as_known = lambda x, known: x.astype(known.dtype)
    report = jax.tree.map(as_known, report, SolveReport.unknown())
    steps = jnp.arange(learner.practice.horizon, dtype=jnp.float32)
    weight = learner.problem.temperature * jnp.sum(learner.problem.discount**steps)
    noisy = report.gap <= 2 * report.gap_error
    return report, ~noisy & (report.gap > learner.target_kl * weight)


@eqx.filter_jit
def _numbered(key: PRNGKeyArray, number: Int[Array, ""]) -> PRNGKeyArray:
    return jr.fold_in(key, number)


def renewed(learner: Learner, state: LearnState) -> LearnState:
    """The state with a new challenger, if it is time for one."""
    challenge, step = learner.challenge, int(state.step)
    if challenge is None or not step or step % challenge.every:
        return state
    policy_key, key = jr.split(jr.fold_in(jr.split(learner.key)[1], step))
    policy = policies_like(state.inner.policy)(learner.environment, policy_key)
    started = challenge.start(policy, key=key)
    return dataclasses.replace(state, challenger=started)


def _running_mean(old: Float[Array, ""], new: Float[Array, ""]) -> Float[Array, ""]:
    new = jnp.where(jnp.isfinite(new), new, old).astype(old.dtype)
    return jnp.where(jnp.isnan(old), new, 0.8 * old + 0.2 * new)


def _of_scale(policy: AbstractPolicy, valid: Trajectories) -> dict[str, Array]:
    """The lower limit of the policy's scale, if it has one, and how often it is met."""
    if policy.min_scale is None:
        return {}
    met = jax.vmap(jax.vmap(policy.at_min_scale))(steps_taken(valid)[0])
    return {
        "min_scale": jnp.asarray(policy.min_scale, jnp.float32),
        "at_min_scale": jnp.mean(met, where=valid.mask),
    }


def _of_inner(report: SolveReport) -> dict[str, Array]:
    """How well the inner problem was solved."""
    return {
        "inner_gap": report.gap,
        "inner_gap_error": report.gap_error,
        "inner_gradient_norm": report.gradient_norm,
        "entropy": report.entropy,
        "policy_kl": report.kl,
    }


def _of_estimate(estimate: Estimate) -> dict[str, Array]:
    """What the hypergradient says of itself, and of its curvature solve if any."""
    diagnostics = estimate.diagnostics
    found = {
        "snr": diagnostics.snr,
        "h_norm": diagnostics.norm,
        "ml_irl_cosine": diagnostics.ml_irl_cosine,
    }
    if (info := diagnostics.solve) is None:
        return found
    return found | {
        "damping": info.damping,
        "residual": info.relative_residual,
        "solver_iterations": info.iterations,
        "effective_dimension": info.effective_dimension,
        "certificate": info.certificate,
    }


def all_finite(tree: PyTree) -> Bool[Array, ""]:
    """Whether every number in a pytree is finite."""
    leaves = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]
    return jnp.all(jnp.stack(leaves))
