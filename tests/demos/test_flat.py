import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from hyperirl import demos
from hyperirl.demos import DemosError, from_flat, to_flat
from hyperirl.demos import flat as flat_module


def test_episodes_are_cut_from_the_flat_arrays_and_padded(flat):
    batch = from_flat(flat).trajectories
    assert batch.lengths.tolist() == [4, 1, 2]
    assert batch.mask.tolist() == [
        [True] * 4,
        [True] + [False] * 3,
        [True] * 2 + [False] * 2,
    ]
    # Episode 1 has rows 5 and 6: its one step and what came after.
    np.testing.assert_array_equal(batch.observations[1, :2], flat["observations"][5:7])
    assert batch.actions[2, :2].tolist() == [0, 1]
    assert batch.terminated.tolist() == [True, False, True]
    assert batch.observations.dtype == jnp.float32
    assert batch.actions.dtype == jnp.int32


def test_flattening_undoes_padding(flat):
    again = to_flat(from_flat(flat))
    assert set(again) == set(flat)
    for name, array in flat.items():
        assert again[name].dtype == array.dtype
        np.testing.assert_array_equal(again[name], array)


def test_what_the_padding_holds_does_not_matter(flat):
    loaded = from_flat(flat)
    batch = loaded.trajectories
    dirty = jnp.where(batch.mask, batch.rewards, jnp.float32(jnp.nan))
    dirty = eqx.tree_at(lambda b: b.rewards, batch, dirty)
    np.testing.assert_array_equal(to_flat(demos.Demos(dirty))["rewards"], np.ones(7))


@pytest.mark.parametrize("number", [np.float16, np.float64, ">f4"])
def test_other_floating_point_types_are_converted(flat, number):
    flat["rewards"] = flat["rewards"].astype(number)
    assert from_flat(flat).trajectories.rewards.dtype == jnp.float32


def test_continuous_actions_are_vectors(flat):
    flat["actions"] = np.zeros((7, 2))
    batch = from_flat(flat).trajectories
    assert batch.actions.shape == (3, 4, 2) and not batch.discrete


def test_expert_nll_is_minus_the_sum_of_each_episode(flat):
    nll = from_flat(flat).expert_nll
    expected = [-part.sum() for part in np.split(flat["expert_log_probs"], [4, 5])]
    np.testing.assert_allclose(nll, expected, rtol=1e-6)


def test_selecting_episodes_keeps_arrays_together(flat):
    picked = from_flat(flat)[jnp.array([2, 0])]
    assert picked.trajectories.lengths.tolist() == [2, 4]
    np.testing.assert_allclose(
        picked.expert_nll[0], -flat["expert_log_probs"][5:].sum(), rtol=1e-6
    )
    assert from_flat(flat)[:2].num_episodes == 2


def test_split_deals_like_trajectories_do(flat):
    from hyperirl import trajectories

    loaded = from_flat(flat)
    parts = demos.split(loaded, (0.3, 0.7), seed=5)
    expected = trajectories.split(loaded.trajectories, (0.3, 0.7), seed=5)
    for part, batch in zip(parts, expected, strict=True):
        assert eqx.tree_equal(part.trajectories, batch)
        assert part.expert_nll.shape == (part.num_episodes,)


def without(name):
    return lambda flat: flat.pop(name)


def put(name, value):
    return lambda flat: flat.update({name: value})


def change(name, function):
    return lambda flat: flat.update({name: function(flat[name])})


def spoil(name, index, value):
    return lambda flat: flat[name].__setitem__(index, value)


BAD = {
    "no observations": (without("observations"), "no array `observations`"),
    "no actions": (without("actions"), "no array `actions`"),
    "no lengths": (without("lengths"), "no array `lengths`"),
    "no terminated": (without("terminated"), "no array `terminated`"),
    "extra array": (put("infos", np.zeros(7)), "unknown array `infos`"),
    "no episodes": (put("lengths", np.zeros(0, int)), "no episodes"),
    "zero-length episode": (spoil("lengths", 1, 0), "Episode 1 has length 0"),
    "negative length": (spoil("lengths", 1, -1), "Episode 1 has length -1"),
    "huge length": (
        put("lengths", np.array([2**62, 2**62, 2**62])),
        "cannot be right",
    ),
    "fractional lengths": (put("lengths", np.ones(3)), "`lengths` is an array of type"),
    "two-dimensional lengths": (
        put("lengths", np.ones((3, 1), int)),
        "`lengths` is an array of type",
    ),
    "lengths that do not add up": (spoil("lengths", 0, 3), "asks for"),
    "one observation too few": (change("observations", lambda o: o[:-1]), "9 rows"),
    "observations of the wrong rank": (
        change("observations", lambda o: o[:, 0]),
        "`observations` is an array",
    ),
    "observations without components": (
        change("observations", lambda o: o[:, :0]),
        "no numbers",
    ),
    "whole numbers as observations": (
        change("observations", lambda o: o.astype(int)),
        "floating-point",
    ),
    "complex observations": (
        change("observations", lambda o: o.astype(complex)),
        "floating-point",
    ),
    "NaN": (spoil("observations", (3, 1), np.nan), "in row 3"),
    "infinity": (spoil("observations", (3, 1), -np.inf), "in row 3"),
    "overflow": (
        change("observations", lambda o: o.astype(np.float64) * 1e60),
        "huge",
    ),
    "NaN rewards": (spoil("rewards", 6, np.nan), "`rewards` has NaN"),
    "too few rewards": (change("rewards", lambda r: r[:-1]), "`rewards` has 6 rows"),
    "too many log-probs": (
        change("expert_log_probs", lambda p: np.append(p, p)),
        "`expert_log_probs` has 14 rows",
    ),
    "infinite log-probs": (
        spoil("expert_log_probs", 0, -np.inf),
        "`expert_log_probs` has NaN, infinite",
    ),
    "one-dimensional float actions": (
        change("actions", lambda a: a.astype(np.float32)),
        "discrete actions must be a list of whole numbers",
    ),
    "two-dimensional whole actions": (
        change("actions", lambda a: a[:, None]),
        "`actions` is an array",
    ),
    "boolean actions": (change("actions", lambda a: a > 0), "`actions` is an array"),
    "text actions": (change("actions", lambda a: a.astype(str)), "`actions` is an"),
    "negative action": (spoil("actions", 2, -1), "Action -1 at step 2"),
    "enormous action": (
        change("actions", lambda a: a.astype(np.int64) + 2**40),
        "is no choice",
    ),
    "too few actions": (change("actions", lambda a: a[1:]), "`actions` has 6 rows"),
    "NaN in vectors": (put("actions", np.full((7, 1), np.nan)), "`actions` has NaN"),
    "vectors without components": (put("actions", np.zeros((7, 0))), "no numbers"),
    "whole numbers as terminated": (
        change("terminated", lambda t: t.astype(int)),
        "3 booleans",
    ),
    "too few terminated": (change("terminated", lambda t: t[:2]), "3 booleans"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arrays_get_one_sentence(flat, case):
    break_it, message = BAD[case]
    break_it(flat)
    with pytest.raises(DemosError, match=message) as caught:
        from_flat(flat)
    assert "\n" not in str(caught.value)


def test_episodes_longer_than_the_horizon_are_refused(flat):
    with pytest.raises(DemosError, match="4 steps, but the recorded horizon is 3"):
        from_flat(flat, demos.Provenance(horizon=3))


def test_padding_that_would_not_fit_in_memory_is_refused(flat, monkeypatch):
    monkeypatch.setattr(flat_module, "_MAX_PADDED", 3 * 5 * 4 - 1)
    with pytest.raises(DemosError, match="do not fit in memory"):
        from_flat(flat)
