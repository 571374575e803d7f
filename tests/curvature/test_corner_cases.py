"""Where algorithms break in silence, ours are right or say that they are not."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from curvature_problems import (
    SOLVERS,
    TALL,
    decaying_rows,
    exact,
    relative_error,
    solved,
)

from hyperirl.curvature import (
    SCFD,
    Absolute,
    Auto,
    ConjugateGradient,
    DenseRows,
    Explicit,
    Identity,
    Neumann,
    Relative,
    SketchPCG,
    Solution,
    Woodbury,
    direct,
    solution,
)
from hyperirl.curvature.iterative import residual_certificate


@pytest.fixture(autouse=True)
def forget_warnings(monkeypatch):
    """Every test is the first to be warned."""
    monkeypatch.setattr(solution, "_warned", set())


EXACT = ("Explicit", "Woodbury", "ConjugateGradient", "SketchPCG", "SCFD")


def float32_rows(key):
    return decaying_rows(key, *TALL, decay=0.8, dtype=jnp.float32)


@pytest.mark.parametrize("name", EXACT)
def test_without_rows_the_answer_is_g_over_damping(name, getkey):
    g = jr.normal(getkey(), (12,), jnp.float64)
    rows = jnp.zeros((0, 12), jnp.float32)
    v = solved(SOLVERS[name](damping=0.5), rows, g).v
    np.testing.assert_allclose(v, 2 * g, rtol=1e-6)


@pytest.mark.parametrize("name", sorted(set(SOLVERS) - {"Auto"}))
def test_for_g_zero_the_answer_is_zero(name, getkey):
    rows = float32_rows(getkey())
    result = solved(SOLVERS[name](damping=0.5), rows, jnp.zeros(12))
    np.testing.assert_array_equal(result.v, np.zeros(12))
    assert result.info.converged


@pytest.mark.parametrize("name", EXACT)
def test_huge_rows_do_not_overflow(name, getkey):
    rows = 1e18 * float32_rows(getkey())
    g = jr.normal(getkey(), (12,), jnp.float64)
    v = solved(SOLVERS[name](damping=1e35), rows, g).v
    assert relative_error(v, exact(rows, g, 1e35)) < 1e-4  # A float32 sketch.


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_rows_that_cannot_be_squared_are_left_out_and_counted(name, bad, getkey):
    rows = float32_rows(getkey())
    g = jr.normal(getkey(), (12,), jnp.float64)
    result = solved(SOLVERS[name](damping=0.1), rows.at[3, 2].set(bad), g)
    expected = exact(rows.at[3].set(0.0), g, 0.1)
    assert relative_error(result.v, expected) < 1e-4  # A float32 sketch.
    assert (int(result.info.rows_seen), int(result.info.rows_refused)) == (40, 1)


def test_a_sketch_larger_than_the_columns_is_cut_and_exact(getkey):
    rows = decaying_rows(getkey(), *TALL)
    g = jr.normal(getkey(), (12,), jnp.float64)
    result = solved(SOLVERS["SCFD"](damping=0.1), rows, g)
    assert relative_error(result.v, exact(rows, g, 0.1)) < 1e-10
    assert float(result.info.certificate) < 1e-9


@pytest.mark.parametrize("make", [Absolute, Relative, lambda x: Explicit(damping=x)])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan])
def test_damping_that_is_not_positive_is_refused(make, value):
    with pytest.raises(ValueError, match="must be positive, got .*Try"):
        make(value)


@pytest.mark.parametrize("name", ["Explicit", "SketchPCG", "SCFD", "Identity"])
def test_damping_found_to_be_negative_only_in_jit_is_no_success(name, getkey):
    solver = SOLVERS[name](damping=0.5)
    leaf = lambda solver: solver.damping.value
    negative = eqx.tree_at(leaf, solver, jnp.asarray(-0.5))
    g = jr.normal(getkey(), (12,), jnp.float64)
    result = solved(negative, float32_rows(getkey()), g)
    assert np.isnan(result.v).all()
    assert not result.info.converged


def test_g_of_another_length_is_refused(getkey):
    with pytest.raises(ValueError, match="rows have 5 columns"):
        Explicit(damping=0.1)(DenseRows(decaying_rows(getkey(), 10, 5)), jnp.zeros(4))


@pytest.mark.parametrize("name", [*EXACT, "Identity"])
def test_a_g_that_is_not_finite_is_not_a_success(name, getkey):
    rows = float32_rows(getkey())
    result = solved(SOLVERS[name](damping=0.5), rows, jnp.full(12, jnp.nan))
    assert not result.info.converged


@pytest.mark.parametrize("damping", [1e-16, 1e-18, 1e-20])
def test_an_exact_solve_without_digits_is_no_success(damping, getkey):
    """Eigenvalues from 1 to 1e-14: what is left of the residual is far from nothing."""
    rows = DenseRows(decaying_rows(getkey(), 12, 8, decay=0.1))
    g = jr.normal(getkey(), (8,), jnp.float64)
    result = solved(Explicit(damping=damping), rows, g)
    assert not result.info.converged


class TestDiagnostics:
    def test_relative_damping_is_a_share_of_the_mean_diagonal(self, getkey):
        rows = decaying_rows(getkey(), 10, 5)
        result = solved(Identity(damping=Relative(0.3)), rows, jnp.ones(5))
        expected = 0.3 * np.trace(rows.T @ rows) / 5
        np.testing.assert_allclose(result.info.damping, expected, rtol=1e-12)

    @pytest.mark.parametrize("solver", [Explicit, Woodbury])
    def test_the_effective_dimension_is_estimated(self, solver, getkey):
        rows = decaying_rows(getkey(), *TALL)
        values = np.linalg.eigvalsh(rows.T @ rows)
        result = solved(solver(damping=0.1), rows, jnp.ones(12))
        # The standard error of eight signs is sqrt(2 * dimension / 8) at most.
        dimension = (values / (values + 0.1)).sum()
        assert abs(float(result.info.effective_dimension) - dimension) < 3 * np.sqrt(
            dimension / 4
        )

    def test_the_effective_dimension_of_a_sketch_is_a_lower_bound(self, getkey):
        rows = decaying_rows(getkey(), 80, 60, decay=0.9)
        values = np.linalg.eigvalsh(rows.T @ rows)
        result = solved(SCFD(damping=0.1, size=8, buffer=16), rows, jnp.ones(60))
        dimension = (values / (values + 0.1)).sum()
        assert 1 < float(result.info.effective_dimension) < dimension

    @pytest.mark.parametrize("solver", [ConjugateGradient, SketchPCG])
    @pytest.mark.parametrize("tolerance", [1e-2, 1e-9])
    def test_iterative_solvers_reach_their_tolerance(self, solver, tolerance, getkey):
        rows = float32_rows(getkey())
        g = jr.normal(getkey(), (12,), jnp.float64)
        solver = solver(damping=1e-3, tolerance=tolerance)
        result = solved(solver, rows, g)
        x, v = np.asarray(rows, np.float64), np.asarray(result.v)
        residual = np.linalg.norm(g - x.T @ (x @ v) - 1e-3 * v) / np.linalg.norm(g)
        assert residual <= tolerance
        assert result.info.converged
        # The residual reported at 1e-2 is a float32 one.
        np.testing.assert_allclose(
            result.info.relative_residual, residual, rtol=0.05, atol=1e-6 * tolerance
        )

    @pytest.mark.parametrize("solver", [ConjugateGradient, SketchPCG])
    def test_the_certificate_of_a_residual_bounds_the_error(self, solver, getkey):
        rows = float32_rows(getkey())
        g = jr.normal(getkey(), (12,), jnp.float64)
        result = solved(solver(damping=1e-2, tolerance=1e-2), rows, g)
        error = relative_error(result.v, exact(rows, g, 1e-2))
        assert error <= float(result.info.certificate) < 1

    def test_stopping_early_is_reported(self, getkey):
        rows = decaying_rows(getkey(), 50, 30)
        g = jr.normal(getkey(), (30,), jnp.float64)
        solver = ConjugateGradient(damping=1e-3, max_iterations=3)
        result = solved(solver, rows, g)
        assert not result.info.converged
        assert float(result.info.relative_residual) > 1e-2

    def test_as_many_steps_as_eigenvalues_are_taken_and_counted(self, getkey):
        """Exact after one step for each; one more product gives the true residual."""
        rows = jnp.diag(jnp.asarray([1.0, 2.0, 3.0, 4.0], jnp.float64))
        g = jr.normal(getkey(), (4,), jnp.float64)
        solver = ConjugateGradient(damping=1.0, tolerance=1e-9, max_iterations=4)
        result = solved(solver, rows, g)
        assert int(result.info.iterations) == 5
        assert relative_error(result.v, exact(rows, g, 1.0)) < 1e-9


class TestWarnings:
    def test_a_solve_that_failed_is_warned_about_once(self, getkey):
        rows = decaying_rows(getkey(), 20, 10)
        g = jr.normal(getkey(), (10,), jnp.float64)
        solver = Neumann(damping=1e-6, num_terms=2)
        with pytest.warns(RuntimeWarning, match="Neumann did not converge"):
            solver(rows, g)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            solver(rows, g)

    def test_a_sketch_that_is_too_small_is_warned_about(self, getkey):
        rows = decaying_rows(getkey(), 40, 10, decay=1.0)
        g = jr.normal(getkey(), (10,), jnp.float64)
        with pytest.warns(RuntimeWarning, match="raise `size` or `damping`"):
            SCFD(damping=1e-3, size=2, buffer=4)(rows, g)

    def test_refused_rows_are_warned_about(self, getkey):
        rows = decaying_rows(getkey(), 10, 5).at[0].set(jnp.nan)
        with pytest.warns(RuntimeWarning, match="1 of 10 rows"):
            Identity(damping=1.0)(rows, jnp.ones(5))

    def test_nothing_is_said_about_values_being_traced(self, getkey):
        rows = decaying_rows(getkey(), 20, 10)
        solve = jax.jit(lambda g: Neumann(damping=1e-6, num_terms=2)(rows, g))
        assert isinstance(solve(jnp.ones(10)), Solution)


@pytest.fixture(scope="module")
def tall():
    return decaying_rows(jr.key(1), 1100, 520, decay=0.97, dtype=jnp.float32)


class TestAuto:
    """`Auto` says what it picked, and the pick is the documented one."""

    def picked(self, rows, share):
        """The pick for a damping of this share of the trace, and its error."""
        damping = share * float(jnp.sum(rows**2))
        g = jr.normal(jr.key(2), (rows.shape[1],), jnp.float64)
        result = solved(Auto(damping=damping), rows, g)
        assert result.info.converged
        assert result.info.solver == "Auto"
        error = relative_error(result.v, exact(rows, g, damping))
        return result.info.name, error < 0.1

    def test_few_columns_are_solved_explicitly(self, getkey):
        assert self.picked(decaying_rows(getkey(), 30, 6), 1e-3) == ("Explicit", True)

    def test_few_rows_are_solved_in_the_rows(self, getkey):
        rows = decaying_rows(getkey(), 20, 520)
        assert self.picked(rows, 1e-3) == ("Woodbury", True)

    def test_strong_damping_needs_only_conjugate_gradients(self, tall):
        assert self.picked(tall, 0.1) == ("ConjugateGradient", True)

    def test_weak_damping_is_preconditioned(self, tall):
        assert self.picked(tall, 1e-5) == ("SketchPCG", True)

    def test_next_to_no_damping_falls_back_to_an_exact_solver(self, tall):
        assert self.picked(tall, 1e-13) == ("Explicit", True)


def test_a_certificate_counts_what_the_error_hides_of_the_solution():
    """At most `e / (1 - e)` of the solution; from `e = 1` on nothing is known."""
    v, damping = jnp.array([2.0, 0.0]), jnp.float64(0.5)
    bound = lambda error: float(residual_certificate(jnp.array([0, error]), v, damping))
    assert [bound(0.0), bound(0.25), bound(0.5)] == [0, pytest.approx(1 / 3), 1]
    assert bound(1.0) == np.inf


@pytest.mark.parametrize("solver", [Explicit, Woodbury])
def test_factors_in_float32_are_refined_to_answers_in_float64(
    solver, getkey, monkeypatch
):
    """As for matrices that are too large to be factored in float64."""
    monkeypatch.setattr(direct, "_SMALL", 0)
    rows = jnp.asarray(decaying_rows(getkey(), 30, 20, decay=0.8), jnp.float32)
    g = jr.normal(getkey(), (20,), jnp.float64)
    result = jax.jit(lambda rows, g: solver(damping=0.02)(rows, g))(rows, g)
    assert int(result.info.iterations) > 0
    assert relative_error(result.v, exact(rows, g, 0.02)) < 1e-8


def test_a_solve_is_traced_once_though_it_is_its_own_transpose(getkey):
    traced = []

    class Counted(Explicit):
        def solve(self, rows, g, damping):
            traced.append(g.shape)
            return super().solve(rows, g, damping)

    rows, g = decaying_rows(getkey(), 12, 7, decay=0.8), jr.normal(getkey(), (7,))
    jax.grad(lambda g: jnp.sum(Counted(damping=0.02)(rows, g).v))(g)
    assert traced == [(7,)]
