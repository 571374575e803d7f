import jax.numpy as jnp
import pytest

from hyperirl.problem import problem


def test_problem_is_in_single_precision():
    """With 64-bit types on, a plain `jnp.asarray` would double everything it meets."""
    made = problem(temperature=0.5, discount=0.9)
    assert made.temperature.dtype == made.discount.dtype == jnp.float32


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_temperature_must_be_positive(value):
    with pytest.raises(ValueError, match="`temperature` must be positive"):
        problem(temperature=value)


@pytest.mark.parametrize("value", [0.0, 1.0, 1.5, float("nan")])
def test_discount_must_be_a_proper_fraction(value):
    with pytest.raises(ValueError, match="`discount` must be between 0 and 1"):
        problem(discount=value)
