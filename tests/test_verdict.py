"""What a finished run says of itself, from the rows of real runs and of bent ones."""

import math

import pytest

from hyperirl import demos
from hyperirl.learning import learn
from hyperirl.verdict import warnings_of

PROBLEM = dict(temperature=0.1, discount=0.99)


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    path = tmp_path_factory.mktemp("demos") / "tabular.npz"
    demos.save(demos.collect("tabular", 40, seed=0), path)
    return dict(
        task="tabular",
        demos=str(path),
        steps=12,
        agent_episodes=16,
        progress=False,
    )


@pytest.fixture(scope="module")
def good_rows(settings):
    return learn(**settings).metrics


def bent(rows, **columns):
    """The same rows with other values in some columns."""
    return [
        row | {name: values[i] for name, values in columns.items()}
        for i, row in enumerate(rows)
    ]


def only(found):
    assert len(found) == 1, found
    return found[0]


def test_a_good_run_has_no_warning(good_rows):
    assert warnings_of(good_rows, **PROBLEM) == []


def test_a_good_long_run_that_is_all_noise_in_the_end_has_no_warning(settings):
    """Plain steps of Adam; the signal is lost where nothing is left to learn."""
    rows = learn(**settings | {"steps": 60}, natural=False).metrics
    late = rows[30:]
    assert sum(row["snr"] < 1 for row in late) >= 10
    assert warnings_of(rows, **PROBLEM) == []
    silent = [row | {"snr": 0.1} if row in late else row for row in rows]
    assert warnings_of(silent, **PROBLEM) == []


@pytest.mark.parametrize("natural", [False, True])
def test_a_huge_learning_rate_is_told(settings, natural):
    """Taken back by the trust region or not: most steps were beyond reason."""
    rows = learn(**settings, learning_rate=1e6, natural=natural).metrics
    assert max(row["nll_valid"] for row in rows) > 1e5
    warning = only(warnings_of(rows, **PROBLEM))
    assert "left all reason" in warning and "Lower the learning rate" in warning


def test_a_run_that_went_up_is_told(good_rows):
    backwards = [row["nll_valid"] for row in reversed(good_rows)]
    warning = only(warnings_of(bent(good_rows, nll_valid=backwards), **PROBLEM))
    assert "ended worse than it began" in warning
    assert f"{backwards[0]:.4g} in the first step" in warning


def test_two_steps_are_enough_to_leave_all_reason():
    rows = [{"step": i, "nll_valid": 100.0**i} for i in (1, 9)]
    assert "it was 100 in the first step, up to 1e+18" in only(warnings_of(rows))


def test_noise_around_the_first_value_is_not_an_end_that_is_worse(good_rows):
    """One lucky step is enough to have gained something; luck alone is no loss."""
    nll = [100 + 3 * (-1) ** i for i in range(1, 13)][::-1]
    nll[0] = 98.0
    assert warnings_of(bent(good_rows, nll_valid=nll), **PROBLEM) == []


def test_one_wild_step_is_no_end(good_rows):
    nll = [row["nll_valid"] for row in good_rows]
    for odd in (4, 11):
        wild = [1e6 if i == odd else value for i, value in enumerate(nll)]
        assert warnings_of(bent(good_rows, nll_valid=wild), **PROBLEM) == []


def test_negative_nll_is_judged_by_differences(good_rows):
    """Densities may be above 1: NLL of -50 is worse than -80, and not by a factor."""
    falling = [-50 - 3 * i for i in range(12)]
    assert warnings_of(bent(good_rows, nll_valid=falling), **PROBLEM) == []
    rising = bent(good_rows, nll_valid=falling[::-1])
    assert "ended worse" in only(warnings_of(rising, **PROBLEM))
    exploding = bent(good_rows, nll_valid=[-50 * (-3) ** i for i in range(12)])
    assert "left all reason" in only(warnings_of(exploding, **PROBLEM))


def test_a_run_that_never_gained_is_told(good_rows):
    same = bent(good_rows, nll_valid=[110.0] * 12)
    assert "Nothing was learned" in only(warnings_of(same, **PROBLEM))


@pytest.mark.parametrize(
    "skipped, told", [([3], False), ([3, 7], True), ([11], True), ([], False)]
)
def test_many_skipped_steps_or_a_skipped_end_are_told(good_rows, skipped, told):
    """One of twelve in the middle is not many."""
    values = [int(i in skipped) for i in range(12)]
    nll = [math.nan if i in skipped else 110.0 - i for i in range(12)]
    found = warnings_of(bent(good_rows, skipped=values, nll_valid=nll), **PROBLEM)
    assert bool(found) == told
    if told:
        assert f"{len(skipped)} of 12 outer steps did nothing" in only(found)


@pytest.mark.parametrize("odd", [math.nan, math.inf, None])
def test_an_nll_that_is_no_number_is_told(good_rows, odd):
    """`None` is how a file of JSON has it."""
    nll = [odd if i == 6 else 110.0 - i for i in range(12)]
    found = only(warnings_of(bent(good_rows, nll_valid=nll), **PROBLEM))
    assert "not finite in 1 of 12" in found


def test_an_inner_problem_that_was_never_solved_is_told(good_rows):
    """A tenth of a nat a step is worth 1 here, above two standard errors."""
    far = bent(good_rows, inner_gap=[1.5] * 12, inner_gap_error=[0.2] * 12)
    assert "far from the best one" in only(warnings_of(far, **PROBLEM))
    unsure = bent(far, inner_gap_error=[0.3] * 12)
    near = bent(far, inner_gap=[0.9] * 12)
    seldom = bent(far, inner_gap=[1.5] * 6 + [0.1] * 6)
    for rows in (unsure, near, seldom):
        assert warnings_of(rows, **PROBLEM) == []
    assert warnings_of(far) == []  # What a nat is worth is not known.


def test_noise_before_anything_was_learned_is_told(good_rows):
    noisy = bent(good_rows, snr=[0.5] * 12)
    assert warnings_of(noisy, **PROBLEM) == []  # It went down to the floor anyway.
    slow = bent(noisy, nll_valid=[110.0 - i for i in range(12)])
    assert "mostly noise in 6 of the last 6" in only(warnings_of(slow, **PROBLEM))
    unknown = [{k: v for k, v in row.items() if k != "floor_valid"} for row in slow]
    assert "mostly noise" in only(warnings_of(unknown, **PROBLEM))
    began_well = bent(unknown, snr=[5.0] * 3 + [0.5] * 9)
    assert warnings_of(began_well, **PROBLEM) == []


def test_a_scale_at_its_limit_is_told(good_rows):
    """It decides the NLL of an expert that hardly varies."""
    met = bent(good_rows, at_min_scale=[0.0] * 8 + [0.25] * 4, min_scale=[0.03] * 12)
    found = only(warnings_of(met, **PROBLEM))
    assert "lower limit of 0.03 for 25 %" in found
    seldom = bent(met, at_min_scale=[0.25] * 4 + [0.0] * 8)
    assert warnings_of(seldom, **PROBLEM) == []


def test_a_run_with_hardly_any_row_has_nothing_to_say(good_rows):
    assert warnings_of([]) == []
    for count in (1, 2):
        assert warnings_of(good_rows[:count], **PROBLEM) == []
    assert warnings_of([{"step": 1, "nll_valid": 3.0}]) == []
