import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl import demos, tasks
from hyperirl.demos import DemosError, experts
from hyperirl.problem import problem


def test_collecting_twice_gives_the_same_demos():
    first, second = (demos.collect("tabular", 40, seed=4) for _ in range(2))
    assert eqx.tree_equal(first.trajectories, second.trajectories)
    other = demos.collect("tabular", 40, seed=5)
    assert not eqx.tree_equal(first.trajectories, other.trajectories)


@pytest.fixture(scope="module")
def made():
    return demos.collect(
        "lqr", 400, seed=2, temperature=0.3, discount=0.9, options={"horizon": 20}
    )


def test_what_is_collected_says_how(made, tmp_path):
    assert made.provenance.expert == "exact: soft Riccati equation"
    assert made.provenance.horizon == 20 and made.provenance.seed == 2
    assert (made.provenance.temperature, made.provenance.discount) == (0.3, 0.9)
    demos.save(made, tmp_path / "lqr.npz")
    loaded = demos.load(tmp_path / "lqr.npz")
    assert loaded.provenance == made.provenance
    assert eqx.tree_equal(loaded.trajectories, made.trajectories)
    np.testing.assert_array_equal(loaded.expert_nll, made.expert_nll)


def test_recorded_nll_is_near_the_entropy_of_the_expert(made):
    """Fails if log-probabilities belong to other actions, or to another temperature."""
    policy = demos.soft_optimal_expert(
        tasks.as_task(demos.environment_of(made.provenance)),
        problem(0.3, 0.9),
        effort=demos.QUICK,
        key=jr.key(0),
    ).policy
    entropy = policy.entropy(jnp.zeros(4, jnp.float32))
    error = jnp.std(made.expert_nll) / 400**0.5
    assert abs(jnp.mean(made.expert_nll) - 20 * entropy) < 4 * error


def test_the_rate_of_an_expert_falls_to_a_hundredth_in_the_second_half():
    rates = [experts._rate(share) for share in (0.0, 0.5, 0.75, 1.0)]
    np.testing.assert_allclose(rates, [1e-3, 1e-3, 1e-4, 1e-5])


@pytest.mark.slow
def test_a_trained_expert_improves_and_reports():
    """A few updates of PPO are enough to hold the pole longer than at random (22)."""
    heard = []
    made = demos.collect(
        "cartpole",
        16,
        effort=demos.Effort(num_updates=40, num_envs=32),
        options={"horizon": 200},
        on_progress=lambda done, words: heard.append((done, words)),
    )
    assert jnp.mean(made.trajectories.lengths) > 60
    assert heard[-1][0] == 1.0 and "soft return" in heard[-1][1]
    assert made.provenance.expert.startswith("PPO: 40 updates")
    assert made.provenance.report["steps"] > 0


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"task": "cartpol"}, "no task 'cartpol'"),
        ({"num_episodes": 0}, "Cannot collect 0 episodes"),
        ({"temperature": 0.0}, "`temperature` must be positive"),
        ({"discount": 1.5}, "`discount` must be"),
        ({"options": {"wheels": 4}}, "does not take these options"),
    ],
)
def test_bad_requests_get_one_sentence(arguments, message):
    with pytest.raises(ValueError, match=message):
        demos.collect(**{"task": "lqr", "num_episodes": 2} | arguments)


def test_training_takes_at_least_one_update():
    with pytest.raises(ValueError, match="at least one update"):
        demos.Effort(num_updates=0)


def test_summary_counts_steps_and_not_padding(flat):
    loaded = demos.from_flat(flat, demos.Provenance(environment="cartpole"))
    found = demos.summarize(loaded)
    assert (found.num_episodes, found.num_steps, found.num_terminated) == (3, 7, 2)
    assert (found.lengths.minimum, found.lengths.maximum) == (1, 4)
    assert found.returns.mean == pytest.approx(7 / 3)
    assert found.action_shares == pytest.approx((3 / 7, 4 / 7))
    first = np.split(flat["observations"][:, 0], [5, 7])
    seen = np.concatenate([part[:-1] for part in first])
    assert found.observations[0].maximum == pytest.approx(seen.max())
    assert found.observations[0].mean == pytest.approx(seen.mean())
    assert found.expert_nll.mean == pytest.approx(-flat["expert_log_probs"].sum() / 3)
    assert found.uniform_nll == pytest.approx(np.log(2) * 7 / 3)


def test_summary_of_demos_about_which_nothing_is_known(flat):
    del flat["rewards"], flat["expert_log_probs"]
    flat["actions"] = np.stack([flat["actions"], flat["actions"]], 1).astype(float)
    found = demos.summarize(demos.from_flat(flat))
    assert found.returns is None and found.expert_nll is None
    assert found.uniform_nll is None and found.action_shares is None
    assert len(found.actions) == 2 and found.actions[0].mean == pytest.approx(4 / 7)


def test_demos_error_is_a_value_error():
    assert issubclass(DemosError, ValueError)


def test_an_expert_of_a_robot_sees_normalized_inputs():
    """Hopper's expert had half the return without it."""
    task = tasks.as_task("gym:InvertedPendulum-v5")
    effort = demos.Effort(num_updates=1, num_envs=8)
    expert = demos.soft_optimal_expert(
        task, problem(0.1, 0.99), effort=effort, key=jr.key(0)
    )
    angular_velocity = 3  # The largest of its four numbers.
    scale = expert.policy.normalizer.scale  # pyright: ignore
    assert scale[angular_velocity] > 5 * scale[0]


def test_experts_of_robots_get_many_small_updates():
    """With 400 updates four times as large Hopper's expert returned less."""
    usual = demos.Effort().at
    assert usual(tasks.as_task("gym:InvertedPendulum-v5").environment) == (1600, 16)
    assert usual(tasks.as_task("gym:CartPole-v1").environment) == (400, 128)
    assert demos.Effort(7, 8).at(tasks.as_task("lqr").environment) == (7, 8)
