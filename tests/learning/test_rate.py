"""The learning rate: its schedule, and that changing it compiles nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from hyperirl import demos
from hyperirl.learning import LearnConfig, complete, learn, setup, step
from hyperirl.learning.step import Rate


def test_the_schedule_is_the_cosine_of_optax():
    ours = Rate(first=0.3, last_share=0.1, num_steps=7)
    theirs = optax.cosine_decay_schedule(0.3, 7, alpha=0.1)
    counts = jnp.arange(10, dtype=jnp.int32)  # Also beyond the last step.
    with jax.numpy_dtype_promotion("standard"):
        expected = theirs(counts)
    np.testing.assert_allclose(jax.vmap(ours)(counts), expected, rtol=1e-6)


def test_a_constant_schedule_stays():
    config = complete(LearnConfig(env="lqr", schedule="constant", learning_rate=0.3))
    rate = setup.make_rate(config)
    np.testing.assert_allclose(rate(jnp.asarray(20, jnp.int32)), 0.3, rtol=1e-6)


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd", "rmsprop"])
def test_a_named_optimizer_follows_the_rate_it_is_given(name):
    config = LearnConfig(optimizer=name, learning_rate=0.3, steps=5, natural=False)
    ours, rate = setup.make_optimizer(config), setup.make_rate(config)
    theirs = optax.chain(
        optax.clip_by_global_norm(1.0),
        getattr(optax, name)(optax.cosine_decay_schedule(0.3, 5, alpha=0.1)),
    )
    mine = other = jnp.array([3.0, -0.2], jnp.float32)
    my_moments, other_moments = ours.init(mine), theirs.init(other)
    with jax.numpy_dtype_promotion("standard"):
        for i in range(5):
            my_moments = optax.tree_utils.tree_set(
                my_moments, learning_rate=rate(jnp.asarray(i, jnp.int32))
            )
            update, my_moments = ours.update(mine, my_moments, mine)
            mine = optax.apply_updates(mine, update)
            update, other_moments = theirs.update(other, other_moments, other)
            other = optax.apply_updates(other, update)
    np.testing.assert_allclose(mine, other, rtol=1e-5)


def test_another_rate_damping_and_number_of_steps_compile_nothing(
    monkeypatch, tmp_path
):
    path = tmp_path / "tabular.npz"
    demos.save(demos.collect("tabular", 10, seed=0), path)
    settings = dict(demos=str(path), agent_episodes=16, natural=False)
    jax.clear_caches()
    traced, nll = [], step.policy_nll
    monkeypatch.setattr(step, "policy_nll", lambda *a: traced.append(0) or nll(*a))
    learn("tabular", steps=1, learning_rate=1e-3, damping=1.0, **settings)
    once = len(traced)
    assert once > 0
    learn("tabular", steps=2, learning_rate=1e-2, damping=0.1, **settings)
    assert len(traced) == once


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("no_such_thing", "Optax has no optimizer 'no_such_thing'"),
        ("apply_updates", "cannot be made from a learning rate alone"),
    ],
)
def test_an_unknown_optimizer_is_refused(name, reason):
    with pytest.raises(ValueError, match=reason):
        setup.make_optimizer(complete(LearnConfig(optimizer=name)))
