"""What stays the same during a run that learns a reward, and what changes."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from hyperirl.environments import AbstractWorld
from hyperirl.hypergradient import AbstractEstimator, NaturalStep, SoftBellman
from hyperirl.inner import AbstractInnerSolver
from hyperirl.inner.solver import hyperparameter
from hyperirl.learning.challenging import Challenge
from hyperirl.learning.rate import Rate
from hyperirl.learning.trust import Solved, Trust, choose
from hyperirl.networks import partition
from hyperirl.policies import AbstractPolicy
from hyperirl.problem import Problem
from hyperirl.rewards import AbstractReward
from hyperirl.trajectories import Trajectories


class Learner(eqx.Module):
    """What stays the same during a run."""

    environment: AbstractWorld
    agents: AbstractWorld  # The same, entered where the training data are.
    practice: AbstractWorld  # Where the inner problem is solved.
    problem: Problem
    inner: AbstractInnerSolver
    estimator: AbstractEstimator
    natural: NaturalStep | None  # None: the optimizer gets the hypergradient itself.
    check: SoftBellman | None  # None: nothing to compare the hypergradient with.
    challenge: Challenge | None  # None: the policy in the loop has no rivals.
    radius: Float[Array, ""]  # How far a natural step may go, in discounted nats.
    train: Trajectories
    valid: Trajectories
    key: PRNGKeyArray
    rate: Rate | None  # None: the optimizer has its own.
    optimizer: optax.GradientTransformation = eqx.field(static=True)
    inner_updates: int = eqx.field(static=True)
    adaptive: bool = eqx.field(static=True)
    trust_region: bool = eqx.field(static=True)
    segment: int | None = eqx.field(static=True, default=None)
    """Steps of the agent's trajectories; None: whole episodes."""
    target_kl: Float[Array, ""] = hyperparameter(0.01)
    """Nats a step from the inner optimum that are near enough."""
    max_solves: int = eqx.field(static=True, default=6)
    """How many times the inner solver may be run for one outer step."""
    window: int = eqx.field(static=True, default=5)
    """Steps whose NLL is averaged to choose a reward."""
    slack: Float[Array, ""] = hyperparameter(0.3)
    """Discounted nats by which the loss may rise: inner solutions are noisy."""
    grow: Float[Array, ""] = hyperparameter(2.0)
    """What the trust region is multiplied with after a good step to its border..."""
    shrink: Float[Array, ""] = hyperparameter(0.25)
    """...and the length of a bad step, to become the region of the next."""
    low_snr: float = eqx.field(static=True, default=2.0)
    """Signal-to-noise ratio below which the trajectories are doubled..."""
    most_doublings: int = eqx.field(static=True, default=2)
    """...so many times at most."""


class Best(eqx.Module):
    """What is kept of the run.

    The policy is the one with the lowest held-out NLL. The NLL of a step also has the
    luck of the inner solver in it, which is the policy's and not the reward's; so the
    reward is the one with the lowest mean over the last steps.
    """

    nll: Float[Array, ""]
    policy: AbstractPolicy
    recent: Float[Array, " window"]  # NLL of the last steps, NaN before the first.
    mean_nll: Float[Array, ""]  # Lowest mean of recent ones.
    reward: AbstractReward


class LearnState(eqx.Module):
    """What changes: all of it is in a checkpoint, and nothing else is needed."""

    step: Int[Array, ""]
    reward: AbstractReward
    moments: PyTree  # Of the optimizer.
    inner: Any  # Of the inner solver; its policy is `inner.policy`.
    estimator: PyTree  # What the estimator remembers.
    trust: Trust | None  # None: no step is taken back.
    challenger: Any  # A state of its solver, if there is one.
    best: Best
    agent_episodes: Int[Array, ""]
    snr: Float[Array, ""]  # Running mean.
    skipped: Int[Array, ""]  # Steps in a row.


def init(
    learner: Learner,
    reward: AbstractReward,
    policy: AbstractPolicy,
    agent_episodes: int,
) -> LearnState:
    """The state before the first step."""
    count = lambda n: jnp.asarray(n, jnp.int32)
    key = jr.split(learner.key)[0]  # The steps fold their number into the key itself.
    inner = learner.inner.init(learner.practice, policy, key=key)
    infinite = jnp.asarray(jnp.inf, jnp.float32)
    trust = Trust(Solved(infinite, reward, inner), learner.radius, learner.radius)
    return LearnState(
        step=count(0),
        reward=reward,
        moments=learner.optimizer.init(partition(reward)[0]),
        inner=inner,
        estimator=learner.estimator.init(reward, inner.policy),
        trust=trust if learner.trust_region else None,
        challenger=None
        if learner.challenge is None
        else learner.challenge.start(policy, key=key),
        best=Best(
            infinite,
            inner.policy,
            jnp.full(learner.window, jnp.nan, jnp.float32),
            infinite,
            reward,
        ),
        agent_episodes=count(agent_episodes),
        snr=jnp.asarray(jnp.nan, jnp.float32),
        skipped=count(0),
    )


def keep_best(best: Best, nll: Float[Array, ""], *, reward, policy) -> Best:
    """What is kept after a step with this held-out NLL."""
    nll = nll.astype(best.nll.dtype)
    recent = jnp.append(best.recent[1:], nll)
    mean_nll = jnp.nanmean(recent)
    lower, steadier = nll < best.nll, mean_nll < best.mean_nll
    return Best(
        nll=jnp.where(lower, nll, best.nll),
        policy=choose(lower, policy, best.policy),
        recent=recent,
        mean_nll=jnp.where(steadier, mean_nll, best.mean_nll),
        reward=choose(steadier, reward, best.reward),
    )
