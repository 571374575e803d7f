"""A cell that learns: with whose settings, and on what it is judged."""

import numpy as np
import pytest

from hyperirl import demos, saving
from hyperirl.cloning import mean_nll
from hyperirl.demos.splitting import split_demos
from hyperirl.experiments.learn import learning, run, settled
from hyperirl.learning import complete
from hyperirl.options import Options
from hyperirl.tasks import make


def test_a_cell_has_the_settings_of_its_preset():
    config = {"env": "lqr", "seed": 2}
    tuned = settled(learning("trial", config).settings)
    authors = settled(learning("trial", config, preset="paper").settings)
    task, said = make("lqr"), Options(seed=2)
    assert tuned == complete(said, task)
    assert authors == complete(said, task, paper=True) != tuned


@pytest.mark.slow
def test_a_cell_is_judged_on_the_episodes_its_own_seed_left_out(tmp_path):
    """A real run: a clone, which takes no fresh policies to judge."""
    source = demos.collect("tabular", 40, seed=0)
    demos.save(source, tmp_path / "tabular.npz")
    config = {"env": "tabular", "demos": str(tmp_path / "tabular.npz")}
    config |= {"method": "bc", "seed": 3}
    cell = learning("trial", config, evaluation={"budget": 8192, "seeds": 1})
    found = run(cell.settings, tmp_path / "run")["evaluation"]["policy_nll"]["mean"]
    policy = saving.load_policy(tmp_path / "run" / "policy.npz")
    nll = {
        seed: float(mean_nll(policy, split_demos(source, seed).test.trajectories))
        for seed in (0, 3)
    }
    np.testing.assert_allclose(found, nll[3], rtol=1e-5)
    assert abs(nll[3] - nll[0]) > 0.01 * nll[3]
