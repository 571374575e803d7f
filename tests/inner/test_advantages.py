import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hyperirl.inner.advantages import generalized_advantages, value_errors
from hyperirl.inner.reinforce import rewards_to_go
from hyperirl.problem import problem

column = lambda *numbers: jnp.array(numbers, jnp.float32)[:, None]
flags = lambda *numbers: jnp.array(numbers, bool)[:, None]


def advantages(terminated, truncated):
    errors = value_errors(
        rewards=column(1.0, 2.0, 3.0),
        values=column(10.0, 20.0, 30.0),
        next_values=column(20.0, 30.0, 40.0),
        terminated=terminated,
        discount=jnp.float32(0.5),
    )
    ends = terminated | truncated
    return generalized_advantages(errors, ends, decay=jnp.float32(0.25))[:, 0]


def test_advantages_by_hand():
    """delta = 1 + 10 - 10, 2 + 15 - 20, 3 + 20 - 30; later ones count a quarter."""
    never = flags(0, 0, 0)
    expected = np.array([1 - 0.75 - 7 / 16, -3 - 7 / 4, -7])
    np.testing.assert_allclose(advantages(never, never), expected, rtol=1e-6)


def test_after_a_termination_there_is_no_value_and_no_later_reward():
    """delta_1 = 2 + 0 - 20, and the third step belongs to the next episode."""
    found = advantages(flags(0, 1, 0), flags(0, 0, 0))
    np.testing.assert_allclose(found, [1 - 18 / 4, -18, -7], rtol=1e-6)


def test_a_truncation_is_bootstrapped_but_ends_the_sum():
    """delta_1 = 2 + 15 - 20 as if nothing had happened, then the sum stops."""
    found = advantages(flags(0, 0, 0), flags(0, 1, 0))
    np.testing.assert_allclose(found, [1 - 3 / 4, -3, -7], rtol=1e-6)


def test_advantages_match_their_definition_on_random_batches(getkey):
    """Oracle: the double sum, written out."""
    shape = 12, 3
    rewards, values, after = jr.normal(getkey(), (3, *shape), jnp.float32)
    terminated = jr.bernoulli(getkey(), 0.2, shape)
    truncated = ~terminated & jr.bernoulli(getkey(), 0.2, shape)
    errors = value_errors(rewards, values, after, terminated, discount=jnp.float32(0.9))
    ends = terminated | truncated
    found = generalized_advantages(errors, ends, decay=jnp.float32(0.72))
    rewards, values, after = map(np.asarray, (rewards, values, after))
    terminated, truncated = np.asarray(terminated), np.asarray(truncated)
    expected = np.zeros(shape)
    for env in range(shape[1]):
        for t in range(shape[0]):
            for k in range(t, shape[0]):
                alive = not terminated[k, env]
                delta = rewards[k, env] + 0.9 * alive * after[k, env] - values[k, env]
                expected[t, env] += 0.72 ** (k - t) * delta
                if terminated[k, env] or truncated[k, env]:
                    break
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_the_first_error_is_the_steps_own_and_the_others_are_what_stands_for_them():
    """5 + 20 / 4 + 30 / 16, and so on: its own 10 and 15 are not asked for."""
    found = generalized_advantages(
        column(5.0, 10.0, 15.0),
        flags(0, 0, 0),
        decay=jnp.float32(0.25),
        later=column(-1.0, 20.0, 30.0),
    )
    expected = [5 + 20 / 4 + 30 / 16, 10 + 30 / 4, 15]
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-6)


def test_rewards_to_go_are_discounted_from_each_step():
    found = jax.jit(rewards_to_go)(column(1.0, 2.0, 4.0), problem(1.0, 0.5))
    np.testing.assert_allclose(found[:, 0], [3.0, 4.0, 4.0], rtol=1e-6)
