"""Datasets the real Minari wrote, and those it reads of ours."""

import gc
import json
import pathlib
import shutil
import warnings

import gymnasium as gym
import h5py
import minari
import numpy as np
import pytest

from hyperirl import demos
from hyperirl.demos import DemosError, from_flat, reading, to_flat

FIXTURES = pathlib.Path(__file__).parent / "fixtures"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Where Minari keeps its datasets."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    return tmp_path / "datasets"


@pytest.fixture
def recorded(home):
    """Two episodes of CartPole and what Minari says is in them."""
    return record("CartPole-v1", "CartPole/test-v0", steps=15)


@pytest.fixture
def folder(home, recorded):
    return home / "CartPole" / "test-v0"


def record(environment, name, steps, wrap=lambda env: env):
    """Two episodes by the real library, as it reads them back."""
    with warnings.catch_warnings(action="ignore"):  # It says much about authors.
        env = minari.DataCollector(wrap(gym.make(environment, max_episode_steps=steps)))
        env.action_space.seed(0)
        for seed in range(2):
            env.reset(seed=seed)
            over = False
            while not over:
                *_, terminated, truncated, _ = env.step(env.action_space.sample())
                over = terminated or truncated
        dataset = env.create_dataset(name, algorithm_name="random")
        env.close()
        del env
        gc.collect()  # It leaves a temporary folder to be collected.
    return list(dataset.iterate_episodes())


def test_a_dataset_is_found_by_its_id_and_read_as_minari_reads_it(recorded):
    loaded = demos.load("CartPole/test-v0")
    found = to_flat(loaded)
    joined = lambda name: np.concatenate([getattr(e, name) for e in recorded])
    np.testing.assert_array_equal(found["observations"], joined("observations"))
    np.testing.assert_array_equal(found["actions"], joined("actions"))
    np.testing.assert_array_equal(found["rewards"], joined("rewards"))
    ends = [bool(episode.terminations[-1]) for episode in recorded]
    assert found["terminated"].tolist() == ends == [False, True]
    assert loaded.provenance.environment == "CartPole-v1"
    assert loaded.provenance.horizon == 15
    assert "CartPole/test-v0" in loaded.provenance.expert
    assert loaded.provenance.missing == ()


def test_a_dataset_is_found_by_its_paths(home, recorded):
    folder = home / "CartPole" / "test-v0"
    expected = demos.content_hash(demos.load("CartPole/test-v0"))
    for path in (folder, folder / "data", folder / "data" / "main_data.hdf5"):
        assert demos.content_hash(demos.load(path)) == expected


@pytest.mark.parametrize("name", ["cartpole", "pendulum"])
def test_arrow_is_read_as_minari_reads_it(name):
    """Made, and read back, by the real library: scripts/make_minari_fixture.py."""
    expected = json.loads((FIXTURES / f"minari-{name}-arrow.json").read_text())
    found = to_flat(demos.load(FIXTURES / f"minari-{name}-arrow"))
    joined = lambda field: np.concatenate([np.asarray(e[field]) for e in expected])
    for field in ("observations", "actions", "rewards"):
        np.testing.assert_array_equal(found[field], np.float32(joined(field)))
    assert found["lengths"].tolist() == [len(e["actions"]) for e in expected]
    assert found["terminated"].tolist() == [e["terminations"][-1] for e in expected]


def test_vectors_as_actions(home):
    recorded = record("Pendulum-v1", "test-v0", steps=5)
    batch = demos.load("test-v0").trajectories
    np.testing.assert_array_equal(batch.actions[1], recorded[1].actions)
    assert not batch.discrete and not batch.terminated.any()


def test_choices_as_observations_become_vectors_as_in_gymnasium(home):
    recorded = record("FrozenLake-v1", "lake/test-v0", steps=5)
    space = gym.make("FrozenLake-v1").observation_space
    batch = demos.load("lake/test-v0").trajectories
    expected = [gym.spaces.flatten(space, s) for s in recorded[0].observations]
    np.testing.assert_array_equal(batch.observations[0, : len(expected)], expected)


class Parts(gym.ObservationWrapper):
    """CartPole in two parts, the last one first."""

    def __init__(self, env):
        super().__init__(env)
        parts = {"speed": self._box(2), "place": self._box(1), "choice": self._choice()}
        self.observation_space = gym.spaces.Dict(parts)

    def _box(self, size):
        return gym.spaces.Box(-np.inf, np.inf, (size,), np.float32)

    def _choice(self):
        return gym.spaces.Discrete(3, start=1)

    def observation(self, observation):
        place = observation[:1]
        choice = np.int64(2 if place[0] > 0 else 1)
        return {"speed": observation[2:], "place": place, "choice": choice}


def test_dictionaries_become_vectors_as_in_gymnasium(home):
    recorded = record("CartPole-v1", "parts-v0", steps=5, wrap=Parts)
    space = Parts(gym.make("CartPole-v1")).observation_space
    seen = recorded[1].observations
    rows = [{key: seen[key][i] for key in seen} for i in range(len(seen["place"]))]
    expected = [gym.spaces.flatten(space, row) for row in rows]
    batch = demos.load("parts-v0").trajectories
    np.testing.assert_array_equal(batch.observations[1, : len(expected)], expected)


def test_ours_are_read_by_minari(tmp_path, flat, provenance):
    demos.save(from_flat(flat, provenance), tmp_path / "mine-v3")
    dataset = minari.MinariDataset(tmp_path / "mine-v3" / "data")
    assert dataset.total_episodes == 3 and dataset.total_steps == 7
    assert dataset.spec.dataset_id == "mine-v3" and dataset.action_space.n == 2
    episode = list(dataset.iterate_episodes())[2]
    np.testing.assert_array_equal(episode.observations, flat["observations"][7:])
    np.testing.assert_array_equal(episode.actions, flat["actions"][5:])
    assert episode.terminations.tolist() == [False, True]
    assert not episode.truncations.any()
    log_probs = episode.infos["expert_log_probs"]
    np.testing.assert_array_equal(log_probs[1:], flat["expert_log_probs"][5:])
    first = next(iter(dataset.iterate_episodes()))
    assert dataset.observation_space.contains(first.observations[0])


@pytest.mark.parametrize("kept", [("rewards", "expert_log_probs"), ("rewards",), ()])
def test_the_round_trip_changes_nothing(tmp_path, flat, provenance, kept):
    for name in {"rewards", "expert_log_probs"} - {*kept}:
        del flat[name]
    demos.save(from_flat(flat, provenance), tmp_path / "folder")
    loaded = demos.load(tmp_path / "folder")
    assert loaded.provenance == provenance
    found = to_flat(loaded)
    assert set(found) == set(flat)
    for name, array in flat.items():
        np.testing.assert_array_equal(found[name], array)


def test_vectors_make_the_round_trip_too(tmp_path, flat):
    flat["actions"] = np.random.default_rng(1).normal(size=(7, 2)).astype(np.float32)
    demos.save(from_flat(flat), tmp_path / "folder")
    np.testing.assert_array_equal(
        to_flat(demos.load(tmp_path / "folder"))["actions"], flat["actions"]
    )


def test_a_folder_is_never_replaced(tmp_path, flat):
    (tmp_path / "precious").mkdir()
    with pytest.raises(DemosError, match="already exists"):
        demos.save(from_flat(flat), tmp_path / "precious", overwrite=True)


def test_a_failed_write_leaves_nothing_behind(tmp_path, flat, monkeypatch):
    monkeypatch.setattr(h5py.Group, "create_dataset", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        demos.save(from_flat(flat), tmp_path / "folder")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_downloaded_unless_asked_for(home, monkeypatch):
    monkeypatch.setattr(minari, "download_dataset", lambda _: pytest.fail("downloaded"))
    with pytest.raises(DemosError, match="no demonstrations 'D4RL/pen/human-v2'"):
        demos.load("D4RL/pen/human-v2")


def test_a_download_may_be_asked_for(home, monkeypatch):
    def fetch(name):
        shutil.copytree(FIXTURES / "minari-cartpole-arrow", home / name)

    monkeypatch.setattr(minari, "download_dataset", fetch)
    assert demos.load("far/away-v0", download=True).num_episodes == 2

    def offline(name):
        raise OSError(f"no route to\nhost for {name}")

    monkeypatch.setattr(minari, "download_dataset", offline)
    with pytest.raises(DemosError, match="Cannot download far/gone-v0 .no route to h"):
        demos.load("far/gone-v0", download=True)


def refused(path, message):
    with pytest.raises(DemosError, match=message) as caught:
        demos.load(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def change_metadata(folder, **changes):
    path = folder / "data" / "metadata.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


BAD_METADATA = {
    "no space": ({"observation_space": None}, "no observation space"),
    "a broken space": ({"observation_space": "{"}, "observation space is not JSON"),
    "text": ({"observation_space": '{"type": "Text"}'}, "of the space Text"),
    "a sequence": ({"observation_space": '{"type": "Sequence"}'}, "of the space Seq"),
    "another structure": (
        {"observation_space": '{"type": "Dict", "subspaces": {}}'},
        "of the space Dict",
    ),
    "too many choices": (
        {"observation_space": '{"type": "Discrete", "n": 1000000000}'},
        "can be told apart",
    ),
    "parquet": ({"data_format": "parquet"}, "in the format 'parquet'"),
    "a broken spec": ({"env_spec": "{"}, "`env_spec` is not JSON"),
    "broken provenance": ({"hyperirl": "{"}, "not JSON"),
}


@pytest.mark.parametrize("case", BAD_METADATA)
def test_bad_metadata_get_one_sentence(folder, case):
    changes, message = BAD_METADATA[case]
    change_metadata(folder, **changes)
    refused(folder, message)


def test_the_environment_that_is_named_is_never_made(folder):
    """Minari would call its entry point."""
    spec = {"id": "x-v0", "entry_point": "os:abort", "max_episode_steps": 3}
    change_metadata(folder, env_spec=json.dumps(spec))
    loaded = demos.load(folder)
    assert loaded.provenance.environment == "x-v0"
    assert loaded.provenance.horizon is None  # The episodes are longer: it is wrong.


def with_hdf5(function):
    def change(folder):
        with h5py.File(folder / "data" / "main_data.hdf5", "a") as file:
            function(file, file["episode_0"])

    return change


def replace(name, **arguments):
    def change(_, episode):
        del episode[name]
        episode.create_dataset(name, **arguments)

    return with_hdf5(change)


def link(name, target):
    def change(_, episode):
        del episode[name]
        episode[name] = target

    return with_hdf5(change)


def nest(_, episode):
    del episode["observations"]
    for _ in range(12):
        episode = episode.create_group("observations")


def external(_, episode):
    del episode["rewards"]
    data = [("/etc/passwd", 0, 80)]
    episode.create_dataset("rewards", shape=(10,), dtype="f8", external=data)


def virtual(_, episode):
    del episode["rewards"]
    layout = h5py.VirtualLayout(shape=(10,), dtype="f8")
    layout[:] = h5py.VirtualSource("other.h5", "x", shape=(10,))
    episode.create_virtual_dataset("rewards", layout)


BAD_FILES = {
    "absent": (lambda f: (f / "data" / "main_data.hdf5").unlink(), "no file main_data"),
    "empty": (lambda f: (f / "data" / "main_data.hdf5").write_bytes(b""), "damaged"),
    "no HDF5": (
        lambda f: (f / "data" / "main_data.hdf5").write_text("hello"),
        "damaged",
    ),
    "no episodes": (with_hdf5(lambda file, _: file.clear()), "no episodes"),
    "no actions": (
        with_hdf5(lambda _, episode: episode.pop("actions")),
        "Episode 0 has no `actions`",
    ),
    "a promise of terabytes": (
        replace("rewards", shape=(2**40,), dtype="f8", chunks=(1024,)),
        "GB of memory",
    ),
    "text as rewards": (replace("rewards", data=[b"one"] * 15), "rather than numbers"),
    "objects": (
        replace("rewards", data=["one"] * 15, dtype=h5py.string_dtype()),
        "rather than numbers",
    ),
    "fewer rewards": (replace("rewards", data=np.ones(3)), "`rewards` of episode 0"),
    "numbers as ends": (replace("terminations", data=np.ones(15)), "true and false"),
    "a scalar": (replace("actions", data=1), "`observations` of episode 0"),
    "a link to elsewhere": (
        link("rewards", h5py.ExternalLink("other.h5", "/x")),
        "points elsewhere",
    ),
    "a soft link": (link("rewards", h5py.SoftLink("/episode_1/rewards")), "elsewhere"),
    "data in another file": (with_hdf5(external), "lies in another file"),
    "virtual data": (with_hdf5(virtual), "lies in another file"),
    "deep groups": (with_hdf5(nest), "nested too deeply"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files_get_one_sentence(folder, case):
    break_it, message = BAD_FILES[case]
    break_it(folder)
    refused(folder, message)


def test_a_file_cut_anywhere_is_refused(folder):
    path = folder / "data" / "main_data.hdf5"
    whole = path.read_bytes()
    for size in range(0, len(whole) - 1, len(whole) // 60):
        path.write_bytes(whole[:size])
        with pytest.raises(DemosError):
            demos.load(folder)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda path: path.unlink(), "no file part-0.arrow"),
        (lambda path: path.write_bytes(b""), "damaged|has no `observations`"),
        (lambda path: path.write_bytes(path.read_bytes()[:900]), "damaged"),
        (lambda path: path.write_bytes(b"ARROW1\0\0" + bytes(200)), "damaged|has no"),
    ],
)
def test_broken_arrow_gets_one_sentence(tmp_path, change, message):
    folder = shutil.copytree(FIXTURES / "minari-cartpole-arrow", tmp_path / "a")
    change(folder / "data" / "1" / "part-0.arrow")
    refused(folder, message)


def test_what_would_fill_the_memory_is_refused(folder, monkeypatch):
    monkeypatch.setattr(reading, "MAX_BYTES", 100)
    refused(folder, "GB of memory")
    refused(FIXTURES / "minari-cartpole-arrow", "GB of memory")
