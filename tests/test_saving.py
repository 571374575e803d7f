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
from jaxtyping import Array, Float

from hyperirl.networks import MLP, Normalizer
from hyperirl.policies import (
    AbstractPolicy,
    Categorical,
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
    StandaloneReward,
    TableReward,
    mlp_reward,
    standalone,
)
from hyperirl.runs import load_metadata, save_arrays
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
    "standalone": lambda key: standalone(
        mlp_reward(3, Discrete(2), key=key, clamp=2.0), Discrete(2), 0.5
    ),
    "standalone quadratic": lambda key: StandaloneReward(
        QuadraticReward(jnp.eye(3), jnp.ones((1, 1))), 1.0
    ),
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


def test_a_name_with_a_dot_keeps_all_of_it(tmp_path):
    path = save_reward(TableReward(jnp.zeros((2, 2))), tmp_path / "reward.v2")
    assert path == tmp_path / "reward.v2.npz" and path.exists()


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


class OwnReward(AbstractReward):
    """Tells its own arrays from what is not kept."""

    scale: Float[Array, ""]
    offset: float = eqx.field(static=True, default=0.0)

    def value(self, observation, action):
        return self.scale * observation[0] + self.offset


class OwnPolicy(AbstractPolicy):
    logits: Float[Array, " actions"]

    def distribution(self, observation):
        return Categorical(self.logits)


class OwnTable(TableReward):
    """Needs more than its parent knows how to describe."""

    names: tuple[str, ...] = eqx.field(static=True, default=())


def features(observation, action):
    return observation


OWN_REWARDS = {
    "own": (OwnReward(jnp.float32(2)), OwnReward(jnp.float32(0), 1.0)),
    "linear": (
        LinearReward(jnp.ones(2), features),
        LinearReward(jnp.zeros(2), features),
    ),
    "subclass": (OwnTable(jnp.ones((2, 2))), OwnTable(jnp.zeros((2, 2)), ("a", "b"))),
}


@pytest.mark.parametrize("name", OWN_REWARDS)
@pytest.mark.parametrize("alone", [False, True], ids=["soft", "standalone"])
def test_rewards_of_ones_own_come_back_into_one_like_them(tmp_path, name, alone):
    """Arrays from the file; functions and settings from what is brought."""
    reward, like = OWN_REWARDS[name]
    saved = standalone(reward, Discrete(2), 0.5) if alone else reward
    path = save_reward(saved, tmp_path / "reward")
    for brought in (like, StandaloneReward(like, 7.0)):
        loaded = load_reward(path, like=brought)
        assert eqx.tree_equal(jax.tree.leaves(loaded.soft), jax.tree.leaves(reward))
        assert jax.tree.structure(loaded.soft) == jax.tree.structure(like)
        if alone:
            assert loaded.level == saved.level
        else:
            assert type(loaded) is type(reward)


def test_a_policy_of_ones_own_comes_back_into_one_like_it(tmp_path):
    policy = OwnPolicy(jnp.arange(3.0))
    path = save_policy(policy, tmp_path / "policy")
    assert eqx.tree_equal(load_policy(path, like=OwnPolicy(jnp.zeros(3))), policy)
    with pytest.raises(
        SavingError, match="of the class OwnPolicy, which a file cannot"
    ):
        load_policy(path)
    with pytest.raises(SavingError, match="is expected"):
        load_policy(path, like=OwnPolicy(jnp.zeros(4)))


def test_a_class_of_ones_own_is_not_loaded_without_one_like_it(tmp_path):
    path = save_reward(OwnReward(jnp.float32(2)), tmp_path / "reward")
    with pytest.raises(SavingError, match="pass `like=` with a OwnReward"):
        load_reward(path)
    with pytest.raises(SavingError, match="class OwnReward.*not a TableReward"):
        load_reward(path, like=TableReward(jnp.zeros((1, 1))))


def test_one_like_it_must_be_of_the_class_in_the_file(tmp_path):
    path = save_reward(TableReward(jnp.ones((1, 1))), tmp_path / "reward")
    assert load_reward(path, like=TableReward(jnp.zeros((1, 1)))).table == 1
    with pytest.raises(SavingError, match="holds a TableReward, not a OwnReward"):
        load_reward(path, like=OwnReward(jnp.float32(0)))


def test_a_description_cannot_pass_for_a_class_of_ones_own(tmp_path):
    """A head has nobody who brings one, and nothing is left over beside a name."""
    path = save_policy(softmax_table(jnp.zeros((2, 2))), tmp_path / "policy")
    _rewrite(path, _set("architecture", "head", {"kind": "own", "class": "Policy"}))
    with pytest.raises(SavingError, match="class Policy"):
        load_policy(path, like=softmax_table(jnp.zeros((2, 2))))
    path = save_reward(OwnReward(jnp.float32(2)), tmp_path / "reward")
    _rewrite(path, _set("architecture", "path", "os.system"))
    with pytest.raises(SavingError, match="`path` is not known"):
        load_reward(path, like=OwnReward(jnp.float32(2)))


def test_what_is_no_reward_or_cannot_be_kept_is_not_saved(tmp_path):
    with pytest.raises(SavingError, match="A OwnPolicy cannot be saved as a reward"):
        save_reward.__wrapped__(OwnPolicy(jnp.zeros(2)), tmp_path / "reward")
    with pytest.raises(SavingError, match="not built the way.*bfloat16"):
        save_reward(TableReward(jnp.zeros((1, 1), jnp.bfloat16)), tmp_path / "reward")


class Counted(AbstractReward):
    counts: np.ndarray

    def value(self, observation, action):
        return observation[0] * self.counts[0]


def test_arrays_that_would_be_lost_are_refused(tmp_path):
    with pytest.raises(SavingError, match="holds NumPy arrays"):
        save_reward(Counted(np.ones(1)), tmp_path / "reward")


@pytest.mark.parametrize(
    "change, words",
    [
        (_set("architecture", "level", "shape", [1]), "`level` has the shape"),
        (_set("architecture", "soft", "kind", "network"), "`kind` is 'network'"),
        (_set("architecture", "soft", "table", "shape", [1]), "`table` has the shape"),
        (_set("architecture", "soft", {"kind": "own", "class": "A" * 99}), "class A"),
        (
            lambda described: described["architecture"].update(
                soft={"kind": "standalone", **described["architecture"]}
            ),
            "a level is added to a level",
        ),
    ],
)
def test_levels_that_are_not_known_are_refused(tmp_path, change, words):
    reward = StandaloneReward(TableReward(jnp.zeros((1, 1))), 1.0)
    path = save_reward(reward, tmp_path / "reward")
    _rewrite(path, change)
    with pytest.raises(SavingError, match=words):
        load_reward(path)


NETWORK = {"sizes": [5, 4, 1], "use_bias": True, "dtype": "float32"}
OLD_DISCRETE = {
    "network": NETWORK | {"activation": "tanh"},
    "num_actions": 2,
    "normalizer": {
        "mean": {"shape": [3], "dtype": "float32"},
        "scale": {"shape": [3], "dtype": "float32"},
    },
    "clamp": 2.0,
}


def _save_old(path, what, module, kind, architecture, metadata):
    """A file as the first version wrote it."""
    described = {
        "format": f"hyperirl {what}",
        "version": 1,
        "kind": kind,
        "architecture": architecture,
        "metadata": metadata,
    }
    save_arrays(path, module, described)
    return path


def test_an_old_reward_of_choices_gets_its_level(tmp_path, getkey):
    reward = MLPReward(MLP((5, 4, 1), key=getkey()), 2, NORMALIZER, 2.0)
    path = tmp_path / "old.npz"
    metadata = {"temperature": 0.3, "env": "cartpole"}
    _save_old(path, "reward", reward, "mlp", OLD_DISCRETE, metadata)
    loaded = load_reward(path)
    assert eqx.tree_equal(loaded.soft, reward)
    np.testing.assert_allclose(loaded.level, 0.3 * np.log(2), rtol=1e-6)


ROOTS = {"shape": [2, 2], "dtype": "float64"}
TABLE = {"table": {"shape": [3, 2], "dtype": "float64"}}
QUADRATIC = {"state_root": ROOTS, "action_root": ROOTS}
OLD_WITHOUT_LEVEL = {
    "no temperature": (TableReward(jnp.ones((3, 2))), "table", TABLE, {}),
    "temperature of another kind": (
        TableReward(jnp.ones((3, 2))),
        "table",
        TABLE,
        {"temperature": "0.3"},
    ),
    "vectors": (
        QuadraticReward(jnp.eye(2), jnp.eye(2)),
        "quadratic",
        QUADRATIC,
        {"temperature": 0.3},
    ),
}


@pytest.mark.parametrize("name", OLD_WITHOUT_LEVEL)
def test_an_old_reward_without_a_level_is_told(tmp_path, name):
    reward, kind, architecture, metadata = OLD_WITHOUT_LEVEL[name]
    path = tmp_path / "old.npz"
    _save_old(path, "reward", reward, kind, architecture, metadata)
    with pytest.warns(UserWarning, match="has no level"):
        loaded = load_reward(path)
    assert eqx.tree_equal(loaded, reward)


def test_an_old_policy_still_loads(tmp_path, getkey):
    policy = mlp_policy(3, Box(1, -1.0, 2.0), key=getkey(), hidden=(2,), squash=True)
    head = {
        "kind": "gaussian",
        "size": 1,
        "covariance": "diagonal",
        "bounds": [-1.0, 2.0],
        "log_scale_bounds": [-10.0, 2.0],
    }
    network = {"sizes": [3, 2, 1], "use_bias": True, "dtype": "float32"}
    architecture = {
        "network": network | {"activation": "tanh"},
        "free": {"shape": [1], "dtype": "float32"},
        "head": head,
        "normalizer": None,
    }
    path = tmp_path / "old.npz"
    _save_old(path, "policy", policy, "network", architecture, {})
    assert eqx.tree_equal(load_policy(path), policy)


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


@pytest.mark.parametrize(
    "change, words",
    [
        (_set("format", "hyperirl policy"), "holds hyperirl policy, not a reward"),
        (_set("version", 3), "version 3.*up to 2"),
        (_set("version", True), "version True"),
        (_set("kind", "transformer"), "`kind` is 'transformer', and known are table"),
        (_set("kind", "network"), "`kind` is 'network', and known are table"),
        (_set("kind", ["mlp"]), "`kind` is"),
        (_set("architecture", []), "in place of a description"),
        (_set("architecture", "new", 1), "`new` is not known"),
        (_set("architecture", "clamp", "2"), "`clamp` is 2"),
        (_set("architecture", "clamp", -1.0), "clamp"),
        (_set("architecture", "clamp", float("inf")), "Infinity is not a JSON number"),
        (_set("architecture", "clamp", float("nan")), "NaN is not a JSON number"),
        (
            _set("architecture", "clamp", 1e200),
            "`clamp` is 1e\\+200, which is too large",
        ),
        (_set("architecture", "kind", "table"), "in place of a description"),
        (_set("architecture", "num_actions", 0), "does not map"),
        (_set("architecture", "num_actions", True), "`num_actions` is True"),
        (_set("architecture", "num_actions", 10**9), "too large"),
        (_set("architecture", "num_actions", 9), "does not map"),
        (
            _set("architecture", "network", "activation", "relu"),
            "`activation` is 'relu'",
        ),
        (_set("architecture", "network", "dtype", "object"), "`dtype` is 'object'"),
        (_set("architecture", "network", "sizes", [5, 10**12, 1]), "not usable"),
        (_set("architecture", "network", "sizes", [5, 10**7, 1]), "expected"),
        (_set("architecture", "network", "sizes", [5, 8, 1]), "expected"),
        (_set("architecture", "network", "sizes", [5, 4, 4, 1]), "lacks"),
        (_set("architecture", "network", "use_bias", False), "not expected"),
        (_set("architecture", "network", {}), "`activation` is missing"),
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


def test_a_scale_of_zero_is_refused(tmp_path, getkey):
    reward = MLPReward(MLP((5, 4, 1), key=getkey()), 2, NORMALIZER)
    path = save_reward(reward, tmp_path / "reward")
    zero = {"tree.normalizer.scale": np.array([1, 0, 1], np.float32)}
    _rewrite(path, lambda _: None, **zero)
    with pytest.raises(SavingError, match="a scale that is not positive"):
        load_reward(path)


@pytest.mark.parametrize(
    "change, words",
    [
        (_set("architecture", "head", "kind", "beta"), "`kind` is 'beta'"),
        (_set("architecture", "head", "size", 2), "does not fit the head"),
        (_set("architecture", "head", "covariance", "round"), "covariance"),
        (_set("architecture", "head", "kind", "mlp"), "`kind` is 'mlp'"),
        (_set("architecture", "head", "bounds", [None, 1]), "only into a finite box"),
        (_set("architecture", "head", "bounds", [5, -5]), "`bounds` are"),
        (_set("architecture", "head", "bounds", [0, "1"]), "`bounds` is"),
        (_set("architecture", "head", "bounds", [0, float("inf")]), "Infinity is not"),
        (_set("architecture", "head", "bounds", [0, 1e200]), "`bounds` is"),
        (_set("architecture", "head", "bounds", [0, 1, 2]), "`bounds` is"),
        (
            _set("architecture", "head", "log_scale_bounds", [2, -10]),
            "`log_scale_bounds` are",
        ),
        (_set("architecture", "head", "log_scale_bounds", None), "`log_scale_bounds`"),
        (_set("architecture", "free", "shape", [1, 1]), "`free` has the shape"),
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
