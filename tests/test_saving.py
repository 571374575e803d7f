import io
import json
import subprocess
import sys
import zipfile

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from hyperirl.networks import MLP, Normalizer
from hyperirl.policies import (
    GaussianHead,
    Policy,
    linear_gaussian,
    mlp_policy,
    softmax_table,
)
from hyperirl.rewards import (
    AbstractReward,
    LinearReward,
    MLPReward,
    QuadraticReward,
    TableReward,
    mlp_reward,
)
from hyperirl.runs import load_metadata
from hyperirl.saving import (
    SavingError,
    load_policy,
    load_reward,
    save_policy,
    save_reward,
)
from hyperirl.spaces import Box, Discrete

NORMALIZER = Normalizer(
    jnp.array([1.0, 2.0, 3.0], jnp.float32), jnp.ones(3, jnp.float32)
)


REWARDS = {
    "table": lambda key: TableReward(jnp.arange(6.0).reshape(3, 2)),
    "quadratic": lambda key: QuadraticReward(jnp.eye(3), jnp.ones((1, 1))),
    "discrete": lambda key: mlp_reward(
        3, Discrete(2), key=key, clamp=2.0, normalizer=NORMALIZER
    ),
    "vectors": lambda key: mlp_reward(3, Box(2), key=key, hidden=(), dtype=jnp.float64),
    "unbiased": lambda key: MLPReward(MLP((5, 4, 1), key=key, use_bias=False), 2),
}
POLICIES = {
    "categorical": lambda key: mlp_policy(
        3, Discrete(2), key=key, normalizer=NORMALIZER
    ),
    "table": lambda key: softmax_table(jnp.arange(6.0).reshape(3, 2)),
    "linear": lambda key: linear_gaussian(jnp.ones((2, 3)), jnp.eye(2)),
    "squashed": lambda key: mlp_policy(
        3, Box(2, -1.0, 1.0), key=key, squash=True, hidden=(8,)
    ),
    "state": lambda key: mlp_policy(3, Box(1), key=key, covariance="state"),
}


@pytest.mark.parametrize("name", REWARDS)
def test_rewards_come_back_bit_by_bit(tmp_path, getkey, name):
    reward = REWARDS[name](getkey())
    path = save_reward(reward, tmp_path / "new" / "reward", metadata={"run": name})
    assert path == tmp_path / "new" / "reward.npz"
    assert eqx.tree_equal(load_reward(path), reward)
    assert eqx.tree_equal(load_reward(tmp_path / "new" / "reward"), reward)
    assert load_metadata(path)["metadata"] == {"run": name}


@pytest.mark.parametrize("name", POLICIES)
def test_policies_come_back_bit_by_bit(tmp_path, getkey, name):
    policy = POLICIES[name](getkey())
    assert eqx.tree_equal(load_policy(save_policy(policy, tmp_path / "p.npz")), policy)


def test_files_are_replaced_only_on_request(tmp_path):
    reward = TableReward(jnp.zeros((2, 2)))
    save_reward(reward, tmp_path / "reward")
    with pytest.raises(SavingError, match="already exists"):
        save_reward(reward, tmp_path / "reward.npz")
    save_reward(TableReward(jnp.ones((2, 2))), tmp_path / "reward", overwrite=True)
    assert load_reward(tmp_path / "reward").table[0, 0] == 1.0


_USE = """
import sys
import numpy as np
from hyperirl.saving import load_reward
reward = load_reward(sys.argv[1])
for dtype in (np.float32, np.float64):
    for action in (1, np.int64(1), np.array(1)):
        value = float(reward(np.array([0.5, -1, 2], dtype), action))
        assert abs(value - float(sys.argv[2])) < 1e-5, value
"""


def test_a_loaded_reward_takes_what_gymnasium_gives(tmp_path, getkey):
    """NumPy arrays, in a process of its own: without this suite's strict settings."""
    reward = mlp_reward(3, Discrete(2), key=getkey())
    path = save_reward(reward, tmp_path / "reward")
    value = reward(jnp.array([0.5, -1, 2], jnp.float32), jnp.asarray(1))
    command = [sys.executable, "-c", _USE, str(path), str(float(value))]
    subprocess.run(command, check=True)


def test_a_feature_function_cannot_be_saved(tmp_path):
    reward = LinearReward(jnp.ones(1), lambda observation, action: observation)
    with pytest.raises(SavingError, match="save `reward.weights`"):
        save_reward(reward, tmp_path / "reward")


class OwnReward(AbstractReward):
    def __call__(self, observation, action):
        return observation[0]


def test_classes_that_are_not_known_cannot_be_saved(tmp_path):
    with pytest.raises(SavingError, match="A OwnReward cannot be saved as a reward"):
        save_reward(OwnReward(), tmp_path / "reward")
    with pytest.raises(SavingError, match="not built the way.*bfloat16"):
        save_reward(TableReward(jnp.zeros((1, 1), jnp.bfloat16)), tmp_path / "reward")


class OwnHead(GaussianHead):
    pass


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda p: eqx.tree_at(lambda p: p.head, p, OwnHead(1)), "OwnHead"),
        (
            lambda p: Policy(
                MLP((3, 2, 1), key=jr.key(0), activation=jax.nn.relu), p.free, p.head
            ),
            "activation `relu`",
        ),
        (
            lambda p: eqx.tree_at(lambda p: p.network.layers[0].bias, p, None),
            "not built the way",
        ),
        (
            lambda p: eqx.tree_at(lambda p: p.free, p, jnp.array([jnp.nan])),
            "NaN or infinity",
        ),
    ],
    ids=["head", "activation", "biases", "nan"],
)
def test_what_could_not_be_loaded_is_not_saved(tmp_path, getkey, change, words):
    policy = mlp_policy(3, Box(1), key=getkey(), hidden=(2,), dtype=jnp.float64)
    with pytest.raises(SavingError, match=words):
        save_policy(change(policy), tmp_path / "policy")
    assert not (tmp_path / "policy.npz").exists()


def _rewrite(path, change, **members):
    """Changes the description of a saved file, and perhaps its arrays."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    described = json.loads(np.load(io.BytesIO(contents["metadata.npy"])).tobytes())
    change(described["metadata"])
    text = np.frombuffer(json.dumps(described).encode(), np.uint8)
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in {"metadata": text, **members}.items():
            stream = io.BytesIO()
            np.save(stream, array)
            contents[f"{name}.npy"] = stream.getvalue()
        for name, content in contents.items():
            archive.writestr(name, content)


def _set(*path_and_value):
    *path, last, value = path_and_value

    def change(described):
        for name in path:
            described = described[name]
        described[last] = value

    return change


@pytest.mark.parametrize(
    "change, words",
    [
        (_set("format", "hyperirl policy"), "holds hyperirl policy, not a reward"),
        (_set("version", 2), "version 2"),
        (_set("kind", "transformer"), "kind='transformer': known are table"),
        (_set("kind", ["mlp"]), "known are table"),
        (_set("architecture", []), "in place of a description"),
        (_set("architecture", "new", 1), "`new` is not known"),
        (_set("architecture", "clamp", "2"), "`clamp` is 2"),
        (_set("architecture", "clamp", -1.0), "clamp"),
        (_set("architecture", "num_actions", True), "`num_actions` is True"),
        (_set("architecture", "num_actions", 10**9), "too large"),
        (_set("architecture", "num_actions", 9), "does not map"),
        (_set("architecture", "network", "activation", "relu"), "activation 'relu'"),
        (_set("architecture", "network", "dtype", "object"), "`dtype` is 'object'"),
        (_set("architecture", "network", "sizes", [5, 10**12, 1]), "not usable"),
        (_set("architecture", "network", "sizes", [5, 10**7, 1]), "expected"),
        (_set("architecture", "network", "sizes", [5, 8, 1]), "expected"),
        (_set("architecture", "network", "sizes", [5, 4, 4, 1]), "lacks"),
        (_set("architecture", "network", "use_bias", False), "not expected"),
        (_set("architecture", "network", {}), "`sizes` is missing"),
        (_set("architecture", "normalizer", None), "not expected"),
        (_set("architecture", "normalizer", "mean", "shape", [2]), "do not fit"),
    ],
)
def test_rewards_that_are_not_known_are_refused(tmp_path, getkey, change, words):
    network = MLP((5, 4, 1), key=getkey())
    path = save_reward(MLPReward(network, 2, NORMALIZER, 2.0), tmp_path / "reward")
    _rewrite(path, change)
    with pytest.raises(SavingError, match=words):
        load_reward(path)


def test_rewards_that_are_not_finite_are_refused(tmp_path):
    path = save_reward(TableReward(jnp.zeros((1, 1))), tmp_path / "reward")
    _rewrite(path, lambda described: None, **{"tree.table": np.array([[np.nan]])})
    with pytest.raises(SavingError, match="NaN or infinity"):
        load_reward(path)


@pytest.mark.parametrize(
    "change, words",
    [
        (_set("architecture", "head", "kind", "beta"), "head 'beta'"),
        (_set("architecture", "head", "size", 2), "does not fit the head"),
        (_set("architecture", "head", "covariance", "round"), "covariance"),
        (_set("architecture", "head", "bounds", [None, 1]), "policy that this"),
    ],
)
def test_policies_that_are_not_known_are_refused(tmp_path, getkey, change, words):
    policy = mlp_policy(3, Box(1), key=getkey(), hidden=(2,))
    path = save_policy(policy, tmp_path / "policy")
    _rewrite(path, change)
    with pytest.raises(SavingError, match=words):
        load_policy(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SavingError, match="no file .*reward.npz"):
        load_reward(tmp_path / "reward")
