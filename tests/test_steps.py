"""One step or many: what is accepted, what is refused, and what is compiled."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jaxtyping import Array, Float

from hyperirl.networks import Normalizer
from hyperirl.policies import AbstractPolicy, Categorical, mlp_policy, softmax_table
from hyperirl.rewards import (
    AbstractReward,
    LinearReward,
    QuadraticReward,
    TableReward,
    mlp_reward,
)
from hyperirl.spaces import Box, Discrete

OBS = 3
F64 = jnp.float64
NORMALIZER = Normalizer(jnp.zeros(OBS), jnp.ones(OBS))


def network(space, **options):
    return mlp_reward(OBS, space, key=jr.key(0), hidden=(4,), dtype=F64, **options)


def first_and_sum(observation, action):
    return jnp.stack([observation[0], jnp.sum(action).astype(observation.dtype)])


CHOICES = {
    "table": TableReward(jnp.arange(6.0).reshape(OBS, 2)),
    "network": network(Discrete(2)),
    "features": LinearReward(jnp.array([1.0, 2.0]), first_and_sum),
}
VECTORS = {
    "quadratic": QuadraticReward(jnp.eye(OBS), jnp.eye(2)),
    "network": network(Box(2)),
    "normalized network": network(Box(2), normalizer=NORMALIZER),
    "features": LinearReward(jnp.array([1.0, 2.0]), first_and_sum),
}


@pytest.mark.parametrize("axes", [(), (4,), (2, 3)], ids=str)
@pytest.mark.parametrize("name", CHOICES)
def test_a_reward_of_choices_accepts_any_leading_axes(name, axes):
    reward, rng = CHOICES[name], np.random.default_rng(0)
    observations, actions = rng.normal(size=(*axes, OBS)), rng.integers(2, size=axes)
    found = reward(observations, actions)
    assert found.shape == axes
    for i in np.ndindex(axes):
        step = jnp.asarray(observations[i]), jnp.asarray(actions[i])
        np.testing.assert_allclose(found[i], reward.value(*step), rtol=1e-12)


@pytest.mark.parametrize("axes", [(), (4,), (2, 3)], ids=str)
@pytest.mark.parametrize("name", VECTORS)
def test_a_reward_of_vectors_accepts_any_leading_axes(name, axes):
    reward, rng = VECTORS[name], np.random.default_rng(0)
    observations, actions = rng.normal(size=(*axes, OBS)), rng.normal(size=(*axes, 2))
    found = reward(observations, actions)
    assert found.shape == axes
    for i in np.ndindex(axes):
        step = jnp.asarray(observations[i]), jnp.asarray(actions[i])
        np.testing.assert_allclose(found[i], reward.value(*step), rtol=1e-12)


@pytest.mark.parametrize(
    "action", [1, np.int64(1), np.array(1, np.uint8), jnp.int32(1)], ids=repr
)
def test_lists_and_numpy_are_accepted(action):
    """In the precision of the reward, which strict promotion would not mix."""
    reward = mlp_reward(OBS, Discrete(2), key=jr.key(0), hidden=(4,))
    observation = jnp.array([1.0, 0.0, 2.0], jnp.float32)
    expected = reward(observation, jnp.int32(1))
    for given in (
        [1, 0, 2],
        (1.0, 0.0, 2.0),
        np.array([1, 0, 2]),
        np.array([1.0, 0, 2]),
    ):
        value = reward(given, action)
        assert value == expected and value.dtype == jnp.float32


WRONG = {
    "size": (
        CHOICES["network"],
        np.zeros(4),
        0,
        "of 3 numbers, .*\\(4,\\)",
    ),
    "table": (
        CHOICES["table"],
        np.zeros(4),
        0,
        "of 3 numbers, .*\\(4,\\)",
    ),
    "batch size": (CHOICES["table"], np.zeros((3, 4)), [0] * 3, "of 3 numbers"),
    "no axis": (CHOICES["network"], 1.0, 0, "of 3 numbers, got shape \\(\\)"),
    "unknown": (CHOICES["features"], 1.0, 0, "as vectors, got shape \\(\\)"),
    "ragged": (CHOICES["network"], [[1, 2, 3], [1]], 0, "arrays of numbers, got"),
    "words": (CHOICES["network"], "left", 0, "arrays of numbers, got left"),
    "too high": (CHOICES["network"], np.zeros(3), 7, "from 0 to 1, got 7"),
    "too low": (CHOICES["table"], np.zeros(3), -1, "from 0 to 1, got -1"),
    "in a batch": (CHOICES["network"], np.zeros((2, 3)), [0, 2], "0 to 1, got 2"),
    "fraction": (CHOICES["network"], np.zeros(3), 0.5, "integers .*got float64"),
    "truth": (CHOICES["network"], np.zeros(3), True, "integers .*got bool"),
    "one action": (
        CHOICES["table"],
        np.zeros((2, 3)),
        0,
        "\\(2,\\) .*\\(\\)",
    ),
    "axes": (CHOICES["network"], np.zeros((2, 3)), [0] * 3, "\\(2,\\) .*\\(3,\\)"),
    "broadcast": (CHOICES["network"], np.zeros((1, 3)), [0] * 3, "\\(1,\\) .*\\(3,\\)"),
    "unknown axes": (CHOICES["features"], np.zeros((2, 3)), [0] * 3, "\\(2,\\), or"),
    "scalar": (CHOICES["features"], np.zeros((2, 3)), 0, "\\(2,\\), or .*\\(\\)"),
    "vector": (VECTORS["quadratic"], np.zeros(3), np.zeros(3), "\\(2,\\) .*\\(3,\\)"),
    "choice": (VECTORS["quadratic"], np.zeros(3), 1, "\\(2,\\) .*\\(\\)"),
    "normalized": (VECTORS["normalized network"], np.zeros(4), np.zeros(2), "of 3"),
    "sum": (VECTORS["network"], np.zeros(4), np.zeros(2), "5 numbers, .* 4 and 2"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_reward_says_what_it_wanted(name):
    reward, observation, action, words = WRONG[name]
    with pytest.raises(ValueError, match=f"^This reward reads .*{words}"):
        reward(observation, action)


def test_what_does_not_fit_is_refused_inside_other_programs_too():
    reward = CHOICES["network"]
    with pytest.raises(ValueError, match="of 3 numbers"):
        eqx.filter_jit(reward)(jnp.zeros(4), jnp.int32(0))
    with pytest.raises(ValueError, match="from 0 to 1, got 7"):
        jax.jit(lambda observation: reward(observation, 7))(jnp.zeros(OBS))


class Noted(AbstractReward):
    """Notes every time Python runs it: that is, every time it is traced."""

    weight: Float[Array, ""]
    notes: list = eqx.field(static=True)

    def value(self, observation, action):
        self.notes.append(isinstance(observation, jax.core.Tracer))
        return self.weight * observation[0]


class Notes(list):
    """A list that is the same for JAX whatever it holds."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


def test_a_reward_is_compiled_on_first_use_and_not_again():
    notes = Notes()
    for weight in (1.0, 2.0, 3.0):
        assert Noted(jnp.asarray(weight), notes)([2.0], 0) == 2 * weight
    assert list(notes) == [True]


def jaxpr(function, *arguments):
    return str(jax.make_jaxpr(function)(*arguments))


def test_a_reward_inside_another_program_is_part_of_it():
    """The same program as without the public call: to the bit, whatever compiles it."""
    step = jnp.zeros(OBS), jnp.int32(1)
    for reward in CHOICES.values():
        assert jaxpr(reward, *step) == jaxpr(reward.value, *step)
    reward = CHOICES["network"]
    slope = lambda call: jax.grad(lambda x: call(x, step[1]))
    assert jaxpr(slope(reward), step[0]) == jaxpr(slope(reward.value), step[0])


def test_a_reward_accepts_batches_inside_another_program():
    reward, observations = CHOICES["network"], jr.normal(jr.key(1), (4, OBS))
    actions = jnp.array([0, 1, 1, 0])
    found = eqx.filter_jit(reward)(observations, actions)
    np.testing.assert_allclose(found, reward(observations, actions), rtol=1e-12)


POLICIES = {
    "categorical": lambda: policy(Discrete(2)),
    "table": lambda: softmax_table(jr.normal(jr.key(1), (OBS, 2))),
    "gaussian": lambda: policy(Box(2)),
    "squashed": lambda: policy(Box(2, -1.0, 1.0), squash=True),
    "own": lambda: Own(jnp.arange(2.0)),
}


def policy(space, **options):
    return mlp_policy(OBS, space, key=jr.key(0), hidden=(4,), dtype=F64, **options)


class Own(AbstractPolicy):
    """Writes only what it must, for one observation."""

    logits: Float[Array, " actions"]

    def distribution(self, observation: Float[Array, " obs"]):
        return Categorical(observation[0] * self.logits)


@pytest.mark.parametrize("axes", [(), (4,), (2, 3)], ids=str)
@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_accepts_any_leading_axes(name, axes):
    policy, observations = POLICIES[name](), jr.normal(jr.key(2), (*axes, OBS))
    key = jr.key(3)
    actions = policy.sample(observations, key=key)
    log_probs = policy.log_prob(np.asarray(observations), np.asarray(actions))
    entropies = policy.entropy(np.asarray(observations).tolist())
    keys = jr.split(key, axes) if axes else key
    for i in np.ndindex(axes):
        one = policy.distribution(observations[i])
        np.testing.assert_allclose(actions[i], one.sample(key=keys[i]), rtol=1e-9)
        np.testing.assert_allclose(log_probs[i], one.log_prob(actions[i]), rtol=1e-9)
        np.testing.assert_allclose(entropies[i], one.entropy(), rtol=1e-9)


@pytest.mark.parametrize("name", ["categorical", "squashed"])
def test_the_distributions_of_a_batch_are_mapped_over(name):
    policy, observations = POLICIES[name](), jr.normal(jr.key(2), (4, OBS))
    entropies = jax.vmap(lambda d: d.entropy())(policy.distribution(observations))
    np.testing.assert_allclose(entropies, policy.entropy(observations), rtol=1e-9)


def test_actions_of_a_batch_are_drawn_independently():
    policy = POLICIES["gaussian"]()
    actions = policy.sample(jnp.zeros((50, OBS)), key=jr.key(0))
    assert len(np.unique(np.asarray(actions)[:, 0])) == 50


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda p: p.sample(np.zeros(4), key=jr.key(0)), "of 3 numbers.*\\(4,\\)"),
        (lambda p: p.entropy(np.zeros(())), "of 3 numbers"),
        (lambda p: p.distribution(np.zeros((2, 4))), "of 3 numbers"),
        (lambda p: p.log_prob(np.zeros(4), 0), "of 3 numbers"),
        (lambda p: p.log_prob(np.zeros(3), 2), "from 0 to 1, got 2"),
        (lambda p: p.log_prob(np.zeros(3), 0.0), "integers"),
        (lambda p: p.log_prob(np.zeros((2, 3)), [0]), "\\(2,\\)"),
    ],
)
def test_a_policy_says_what_it_wanted(call, words):
    with pytest.raises(ValueError, match=f"^This policy reads .*{words}"):
        call(POLICIES["categorical"]())


def test_a_gaussian_policy_reads_vectors():
    with pytest.raises(ValueError, match="actions of shape \\(2,\\)"):
        POLICIES["gaussian"]().log_prob(np.zeros(3), np.zeros(3))


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_inside_another_program_is_part_of_it(name):
    policy, step = POLICIES[name](), (jnp.zeros(OBS), jr.key(0))
    plain = policy.distribution
    if name != "own":
        plain = lambda x: policy.head.distribution(policy.outputs(x))
    sample = lambda x, key: policy.sample(x, key=key)
    plainly = lambda x, key: plain(x).sample(key=key)
    assert jaxpr(policy.distribution, step[0]) == jaxpr(plain, step[0])
    assert jaxpr(sample, *step) == jaxpr(plainly, *step)
    assert jaxpr(policy.entropy, step[0]) == jaxpr(
        lambda x: plain(x).entropy(), step[0]
    )
