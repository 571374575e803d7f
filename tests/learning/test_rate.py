"""The learning rate: its schedule, and that changing it compiles nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from learning_setups import config_of, learner_of

from hyperirl import demos
from hyperirl.learning import parts, step
from hyperirl.learning.rate import Rate, with_rate


def test_the_schedule_is_the_cosine_of_optax():
    ours = Rate(first=0.3, last_share=0.1)
    theirs = optax.cosine_decay_schedule(0.3, 7, alpha=0.1)
    counts = jnp.arange(10, dtype=jnp.int32)  # Also beyond the last step.
    with jax.numpy_dtype_promotion("standard"):
        expected = theirs(counts)
    done = counts.astype(jnp.float32) / 7
    np.testing.assert_allclose(jax.vmap(ours)(done), expected, rtol=1e-6)


def test_a_constant_schedule_stays():
    config = config_of("lqr", schedule="constant", learning_rate=0.3)
    rate = parts.make_rate(config)
    np.testing.assert_allclose(rate(jnp.float32(0.9)), 0.3, rtol=1e-6)


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd", "rmsprop"])
def test_a_named_optimizer_follows_the_rate_it_is_given(name):
    config = config_of(
        "cartpole", optimizer=name, learning_rate=0.3, steps=5, natural=False
    )
    ours, rate = parts.make_optimizer(config), parts.make_rate(config)
    theirs = optax.chain(
        optax.clip_by_global_norm(1.0),
        getattr(optax, name)(optax.cosine_decay_schedule(0.3, 5, alpha=0.1)),
    )
    mine = other = jnp.array([3.0, -0.2], jnp.float32)
    my_moments, other_moments = ours.init(mine), theirs.init(other)
    with jax.numpy_dtype_promotion("standard"):
        for i in range(5):
            my_moments = with_rate(my_moments, rate(jnp.float32(i / 5)))
            update, my_moments = ours.update(mine, my_moments, mine)
            mine = optax.apply_updates(mine, update)
            update, other_moments = theirs.update(other, other_moments, other)
            other = optax.apply_updates(other, update)
    np.testing.assert_allclose(mine, other, rtol=1e-5)


@pytest.fixture(scope="module")
def tabular():
    return demos.collect("tabular", 40, seed=0)


def move(tabular, done, **settings):
    """How the first reward moves in a step when this share of a run is done."""
    said = dict(method="exact", natural=False, optimizer="sgd") | settings
    learner, state = learner_of("tabular", tabular, 4, **said)
    new = step.outer_step(learner, state, 4, jnp.float32(done))[0]
    return new.reward.table - state.reward.table


def test_a_step_has_the_rate_of_its_time_and_compiles_nothing_new(tabular, monkeypatch):
    """The exact hypergradient does not depend on the step, so the rate alone does.

    Fails if the step forgets the rate, or how much of the run is done.
    """
    traced, nll = [], step.policy_nll
    monkeypatch.setattr(step, "policy_nll", lambda *a: traced.append(0) or nll(*a))
    first = move(tabular, 0.0, steps=5, learning_rate=0.01)
    once = len(traced)
    assert once > 0 and jnp.abs(first).max() > 1e-5
    last = move(tabular, 1.0, steps=20, learning_rate=0.03)
    np.testing.assert_allclose(last, 0.3 * first, rtol=1e-3)
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
        parts.make_optimizer(config_of("cartpole", optimizer=name))
