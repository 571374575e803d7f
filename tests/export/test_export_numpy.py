"""What is exported answers as JAX does, with NumPy alone."""

import ast
import json
import pathlib
import subprocess
import sys

import equinox as eqx
import export_cases
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperirl import saving
from hyperirl.export import (
    ExportError,
    export,
    hyperirl_numpy,
    numpy_policy,
    numpy_reward,
    reward_function,
)
from hyperirl.networks import MLP
from hyperirl.policies import AbstractPolicy, Categorical
from hyperirl.rewards import AbstractReward, LinearReward, MLPReward, StandaloneReward

REWARDS, POLICIES = export_cases.rewards(), export_cases.policies()
# Sums of some 30 products in float32, in another order.
CLOSE = {"rtol": 3e-5, "atol": 3e-5}
NO_DEADLINE = settings(deadline=None, max_examples=20, derandomize=True)
seeds = st.integers(0, 2**31)
NUM = 50  # Of one shape, which compiles once.


def check_equal(found, expected):
    np.testing.assert_allclose(found, expected, **CLOSE)
    assert np.shape(found) == np.shape(expected)


@pytest.mark.parametrize("name", REWARDS)
@NO_DEADLINE
@given(seed=seeds)
def test_a_reward_is_the_same_in_numpy(name, seed):
    reward = REWARDS[name]
    observations, actions = export_cases.steps(reward, seed, NUM)
    expected = np.asarray(reward(observations, actions))
    found = numpy_reward(reward)(observations, actions)
    check_equal(found, expected)
    assert found.dtype == expected.dtype


@pytest.mark.parametrize("name", ["diagonal-censored", "state-censored"])
def test_a_bound_has_the_same_probability_in_numpy(name):
    policy, rng = POLICIES[name], np.random.default_rng(0)
    observations = rng.normal(0, 2, (NUM, 3))
    actions = rng.choice([-2.0, 5.0, 1.0], (NUM, 2))
    one = lambda x, a: policy.log_prob(x, a)
    x, a = (jnp.asarray(v, jnp.float32) for v in (observations, actions))
    expected = jax.vmap(one)(x, a)
    check_equal(numpy_policy(policy).log_prob(observations, actions), expected)


def test_probabilities_far_from_the_mean_keep_their_digits():
    x = np.array([-300.0, -40.0, -20.1, -20.0, -19.9, -1.0, 0.0, 5.0])
    expected = jax.scipy.special.log_ndtr(jnp.asarray(x, jnp.float64))
    np.testing.assert_allclose(hyperirl_numpy._log_phi(x), expected, rtol=1e-8)


@eqx.filter_jit
def _answers(policy, observations, actions, noise):
    """What a policy says about steps, by JAX alone."""

    def one(x, action, noise):
        distribution = policy.distribution(x)
        mode, log_prob = distribution.mode(), distribution.log_prob(action)
        return mode, log_prob, policy.act(x, noise)

    return jax.vmap(one)(observations, actions, noise)


@pytest.mark.parametrize("name", POLICIES)
@NO_DEADLINE
@given(seed=seeds)
def test_a_policy_is_the_same_in_numpy(name, seed):
    policy = POLICIES[name]
    observations, actions = export_cases.steps(policy, seed, NUM)
    rng = np.random.default_rng(seed)
    discrete = actions.ndim == 1
    noise = rng.random(NUM) if discrete else rng.normal(size=actions.shape)
    given = [np.float32(observations), np.int32(actions), np.float32(noise)]
    given[1] = given[1] if discrete else np.float32(actions)
    modes, log_probs, chosen = _answers(policy, *map(jnp.asarray, given))
    ours = numpy_policy(policy)
    check_equal(ours.mode(observations), modes)
    check_equal(ours.log_prob(observations, actions), log_probs)
    check_equal(ours.act(observations, noise), chosen)


@pytest.mark.parametrize("batch", [(), (1,), (2, 3), (0,)])
def test_axes_in_front_are_a_batch(batch):
    for name, reward in REWARDS.items():
        x, a = export_cases.steps(reward, 0, 2, 3)
        pick = lambda y, batch=batch: y[
            tuple(slice(n) if n else slice(0) for n in batch)
        ]
        pick = pick if batch else lambda y: y[0, 0]
        if len(batch) == 1:
            x, a = x[0], a[0]
        ours = numpy_reward(reward)
        found, all_of_them = ours(pick(x), pick(a)), ours(x, a)
        np.testing.assert_allclose(found, pick(all_of_them), rtol=1e-5, err_msg=name)
        assert np.shape(found) == batch


def test_a_large_batch_is_answered_as_its_parts_are():
    reward = REWARDS["mlp-vectors-level"]
    x, a = export_cases.steps(reward, 0, 20_001)
    ours = numpy_reward(reward)
    parts = [ours(x[i : i + 6667], a[i : i + 6667]) for i in (0, 6667, 13334)]
    np.testing.assert_allclose(ours(x, a), np.concatenate(parts), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", POLICIES)
def test_one_observation_is_answered_as_many_are(name):
    x, a = export_cases.steps(POLICIES[name], 0, 4)
    ours = numpy_policy(POLICIES[name])
    for i in range(4):
        np.testing.assert_allclose(ours.mode(x[i]), ours.mode(x)[i], rtol=1e-5)
        found, expected = ours.log_prob(x[i], a[i]), ours.log_prob(x, a)[i]
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert np.shape(ours.sample(x[i])) == np.shape(ours.mode(x[i])) == a[i].shape


def test_samples_have_the_probabilities_of_the_policy():
    """Within 5 standard errors, of a categorical and of a squashed Gaussian policy."""
    num = 20_000
    observation = np.array([0.3, -3.1, 0.2])
    many = np.broadcast_to(observation, (num, 3))
    choices = numpy_policy(POLICIES["choices"], seed=0)
    shares = np.bincount(choices.sample(many), minlength=4) / num
    expected = np.exp(choices.log_prob(np.broadcast_to(observation, (4, 3)), range(4)))
    assert np.all(np.abs(shares - expected) < 5 * np.sqrt(expected / num))

    squashed = numpy_policy(POLICIES["state-squashed"], seed=0)
    below = (squashed.sample(many) < squashed.mode(observation)).mean(axis=0)
    assert np.all(np.abs(below - 0.5) < 5 * 0.5 / np.sqrt(num))  # It is the median.


SCRIPT = """
import sys
for name in ("jax", "jaxlib", "equinox", "hyperirl", "gymnasium"):
    sys.modules[name] = None  # Importing it raises.
import json, pathlib
import numpy as np
root = pathlib.Path(sys.argv[1])
out = {}
for folder in sorted(root.iterdir()):
    sys.path.insert(0, str(folder))
    import hyperirl_numpy
    del sys.modules["hyperirl_numpy"]
    sys.path.pop(0)
    given = np.load(folder / "given.npz")
    x, a = given["observations"], given["actions"]
    if (folder / "reward.npz").exists():
        answer = hyperirl_numpy.load_reward(folder / "reward.npz")(x, a, x, a)
    else:
        policy = hyperirl_numpy.load_policy(folder / "policy.npz", seed=0)
        answer = policy.log_prob(x, a)
        policy.predict(x[0])
    out[folder.name] = answer.tolist()
print(json.dumps(out))
"""


def test_every_class_is_exported_to_those_who_have_no_jax(tmp_path):
    expected = {}
    for kind, modules in (("reward", REWARDS), ("policy", POLICIES)):
        for name, module in modules.items():
            path = tmp_path / f"{kind}-{name}.npz"
            save = saving.save_reward if kind == "reward" else saving.save_policy
            save(module, path)
            folder = tmp_path / "out" / f"{kind}-{name}"
            export(path, folder)
            observations, actions = export_cases.steps(module, 0, 6)
            np.savez(folder / "given.npz", observations=observations, actions=actions)
            answer = module if kind == "reward" else module.log_prob
            expected[folder.name] = np.asarray(answer(observations, actions))
    command = [sys.executable, "-I", "-c", SCRIPT, str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found) == set(expected) and len(found) == len(REWARDS) + len(POLICIES)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], **CLOSE, err_msg=name)


def test_the_module_needs_only_numpy():
    tree = ast.parse(pathlib.Path(hyperirl_numpy.__file__).read_text())
    imports = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
    names = {a.name for n in imports if isinstance(n, ast.Import) for a in n.names}
    names |= {n.module for n in imports if isinstance(n, ast.ImportFrom)}
    assert names == {"json", "math", "typing", "numpy"}


def test_the_module_reads_what_is_written_now():
    assert hyperirl_numpy.VERSION == saving.files.VERSION


class Own(AbstractReward):
    def value(self, observation, action):
        return jnp.sum(observation) * 2


class OwnPolicy(AbstractPolicy):
    def distribution(self, observation):
        return Categorical(observation)


@pytest.mark.parametrize(
    "reward",
    [
        Own(),
        StandaloneReward(Own(), 0.5),
        LinearReward(jnp.ones(3), lambda observation, action: observation),
    ],
)
def test_a_class_of_ones_own_is_refused_in_a_sentence(reward, tmp_path):
    name = type(reward.soft).__name__
    with pytest.raises(ExportError, match=f"class {name} has no form in NumPy"):
        numpy_reward(reward)


def test_a_policy_of_ones_own_is_refused_in_a_sentence():
    with pytest.raises(ExportError, match="policy of the class OwnPolicy has no form"):
        numpy_policy(OwnPolicy())


def test_a_reward_of_ones_own_is_a_function_by_jax():
    function = reward_function(StandaloneReward(Own(), 0.5))
    found = function(np.ones((4, 3)), np.zeros(4, int), np.ones((4, 3)), np.ones(4))
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, 6.5)


def test_another_activation_is_computed_by_jax():
    network = MLP((5, 4, 1), key=export_cases.KEY, activation=jax.nn.relu)
    reward = MLPReward(network, 2)
    function = reward_function(reward)
    x = np.ones((2, 3), np.float32)
    np.testing.assert_allclose(function(x, [0, 1]), reward(x, [0, 1]))
    with pytest.raises(ValueError, match="activation `relu`"):
        numpy_reward(reward)


def test_a_function_stays_itself():
    function = lambda state, action, next_state, done: np.zeros(len(state))
    assert reward_function(function) is function


@pytest.mark.parametrize(
    "observation, action, words",
    [
        ([1.0, 2.0], 0, r"reads observations of 3 numbers, got shape \(2,\)"),
        (1.0, 0, r"reads observations of 3 numbers, got shape \(\)"),
        ([[1.0, 2.0, 3.0]], 0, r"reads actions of shape \(1,\), got \(\)"),
        ([1.0, 2.0, 3.0], 4, "reads actions as integers from 0 to 3, got int64 4"),
        ([1.0, 2.0, 3.0], -1, "reads actions as integers from 0 to 3, got int64 -1"),
        ([[1.0, 2.0, 3.0]], [-1], "reads actions as integers from 0 to 3"),
        ([1.0, 2.0, 3.0], 1.0, "reads actions as integers from 0 to 3, got float64"),
    ],
)
def test_steps_that_do_not_fit_are_refused(observation, action, words):
    with pytest.raises(ValueError, match=words):
        numpy_reward(REWARDS["mlp-choices-level"])(observation, action)


def test_vectors_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"actions of shape \(2,\), got \(3,\)"):
        numpy_reward(REWARDS["mlp-vectors"])(np.ones(3), np.ones(3))
    with pytest.raises(ValueError, match="reads 5 numbers, .* got 3 and 3"):
        numpy_reward(REWARDS["mlp-sizes-unknown"])(np.ones(3), np.ones(3))


def test_the_level_is_included_and_said():
    reward = numpy_reward(REWARDS["mlp-choices-level"])
    soft = numpy_reward(REWARDS["mlp-choices"])
    x, a = export_cases.steps(REWARDS["mlp-choices"], 0, 4)
    np.testing.assert_allclose(reward(x, a) - soft(x, a), 0.0693, rtol=1e-5)
    assert reward.level == pytest.approx(0.0693) and soft.level == 0


def test_predict_is_what_sb3_users_expect():
    policy = numpy_policy(POLICIES["choices"], seed=3)
    one, state = policy.predict(np.zeros(3), deterministic=True)
    many, _ = policy.predict(np.zeros((5, 3)), state="kept", deterministic=True)
    assert one.shape == () and one.dtype.kind == "i" and state is None
    assert many.shape == (5,) and np.all(many == one)
    draws = [
        numpy_policy(POLICIES["choices"], seed=3).predict(np.zeros((50, 3)))[0]
        for _ in range(2)
    ]
    assert np.array_equal(*draws) and len(set(draws[0])) > 1
