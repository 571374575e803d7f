"""What ships with the package: small, consistent, and as good as it says."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hyperirl import demos, exact
from hyperirl.policies import log_probs
from hyperirl.problem import problem
from hyperirl.rewards import rewards_of
from hyperirl.trajectories import returns

DATA = Path(demos.__file__).parent / "data"
NAMES = ("cartpole", "cartpole-fixed", "lqr", "pendulum")


@pytest.fixture(scope="module", params=NAMES)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def loaded(name):
    return demos.load(name)


def test_the_bundled_names_are_known():
    assert demos.bundled == NAMES


def test_files_are_small(name):
    assert (DATA / f"{name}.npz").stat().st_size < 600_000


def test_there_are_enough_episodes_to_learn_from_and_hold_out(loaded):
    assert loaded.num_episodes >= 60


def test_they_say_who_made_them(name, loaded):
    made = loaded.provenance
    assert made.environment == name and made.options == {} and made.seed == 0
    assert made.temperature == (1.0 if name == "pendulum" else 0.1)
    assert made.discount == 0.99
    assert made.horizon == demos.environment_of(made).horizon
    assert made.expert.startswith("exact" if name == "lqr" else "PPO")
    assert loaded.expert_nll is not None


def test_rewards_are_those_of_the_environment(loaded):
    environment = demos.environment_of(loaded.provenance)
    batch = loaded.trajectories
    expected = eqx.filter_jit(rewards_of)(environment.reward, batch)
    np.testing.assert_allclose(batch.rewards, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["cartpole", "cartpole-fixed"], scope="module")
def test_every_cartpole_step_is_what_the_dynamics_say(name):
    """Single steps: long replays would drift in float32."""
    batch = demos.load(name).trajectories
    environment = demos.environment_of(demos.load(name).provenance)

    @jax.jit
    def steps(states, actions):
        advance = lambda state, action: environment.advance(
            state, action, key=jax.random.key(0)
        )[0]
        return jax.vmap(jax.vmap(advance))(states, actions)

    expected = steps(batch.observations[:, :-1], batch.actions)
    error = jnp.where(batch.mask[:, :, None], expected - batch.observations[:, 1:], 0.0)
    assert jnp.max(jnp.abs(error)) < 1e-5


def test_the_lqr_expert_is_the_exact_one():
    """Its recorded log-probabilities are those of the soft Riccati policy."""
    loaded = demos.load("lqr")
    environment = demos.environment_of(loaded.provenance)
    policy = exact.lqr.soft_optimal_policy(
        environment, exact.lqr.true_reward(environment), problem(0.1, 0.99)
    )
    expected = eqx.filter_jit(log_probs)(policy, loaded.trajectories)
    np.testing.assert_allclose(loaded.expert_log_probs, expected, rtol=1e-4, atol=1e-4)
    # Entropy of the policy x 100 steps, from ESTIMATORS: 188.7 an episode.
    error = jnp.std(loaded.expert_nll) / loaded.num_episodes**0.5
    assert abs(jnp.mean(loaded.expert_nll) - 188.7) < 4 * error


@pytest.mark.parametrize("name", ["cartpole", "cartpole-fixed"], scope="module")
def test_cartpole_experts_keep_the_pole_up_and_stay_random(loaded):
    batch = loaded.trajectories
    total = returns(batch, batch.rewards)
    assert jnp.mean(total) > 495 and jnp.median(total) == 500
    # A uniform policy has 346.6 for 500 steps, a deterministic one 0.
    assert 270 < jnp.mean(loaded.expert_nll) < 310


def test_the_pendulum_expert_swings_up():
    batch = demos.load("pendulum").trajectories
    assert jnp.mean(returns(batch, batch.rewards)) > -250
    # Upright for most of the second half.
    assert jnp.mean(batch.observations[:, 100:, 0] > 0.9) > 0.9
