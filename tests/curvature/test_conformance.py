"""Every solver against the dense answer in float64, on every kind of system."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from curvature_problems import (
    SOLVERS,
    TALL,
    WIDE,
    decaying_rows,
    exact,
    generator,
    network_rows,
    relative_error,
    solved,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperirl.curvature import (
    KFAC,
    Diagonal,
    Factor,
    FactoredRows,
    Identity,
    Neumann,
    RankOne,
    Relative,
)

DAMPING = 0.02

# The error allowed for rows in float64 and in float32. With rows in float32 and `g` in
# float64, refined solvers still give float64 answers; sketches store float32 rows.
EXACT = {
    "Explicit": (1e-10, 1e-8),
    "Woodbury": (1e-10, 1e-8),
    "ConjugateGradient": (1e-6, 1e-6),
    "SketchPCG": (1e-6, 1e-6),
    "SCFD": (1e-10, 1e-4),
    "FrequentDirections": (1e-10, 1e-4),
    "RobustFrequentDirections": (1e-10, 1e-4),
}


def systems(key, shape):
    """Rows of one shape that are hard in different ways; sketches of 64 hold them."""
    rows = np.array(decaying_rows(key, *shape, decay=0.8))
    deficient = rows.copy()
    deficient[:, 3:] = deficient[:, :1] + deficient[:, 1:2]
    some_zero = rows.copy()
    some_zero[1::2] = 0.0
    columns = np.logspace(0, -4, shape[1])
    return {
        "decaying": rows,
        "rank-deficient": deficient,
        "some rows zero": some_zero,
        "all rows zero": 0 * rows,
        "badly scaled columns": rows * columns,
        "badly scaled rows": rows * np.logspace(0, -4, shape[0])[:, None],
    }


CASES = [
    pytest.param(
        name, shape, dtype, id=f"{name}-{shape[0]}x{shape[1]}-{dtype.__name__}"
    )
    for name in EXACT
    for shape in (TALL, WIDE)
    for dtype in (jnp.float64, jnp.float32)
    # The other frequent directions differ from SCFD in the query only.
    if not (name.endswith("Directions") and (shape, dtype) != (TALL, jnp.float64))
]


@pytest.mark.parametrize("name, shape, dtype", CASES)
def test_exact_solvers_give_the_dense_answer(name, shape, dtype, getkey):
    solver = SOLVERS[name](damping=DAMPING)
    tolerance = EXACT[name][dtype == jnp.float32]
    g = jr.normal(getkey(), (shape[1],), jnp.float64)
    errors = {}
    for label, rows in systems(getkey(), shape).items():
        rows = jnp.asarray(rows, dtype)
        solution = solved(solver, rows, g)
        assert solution.info.converged, label
        errors[label] = relative_error(solution.v, exact(rows, g, DAMPING))
    assert max(errors.values()) < tolerance, errors


@pytest.mark.parametrize("name", ["Explicit", "Woodbury"])
def test_float32_answers_survive_dependent_rows_and_next_to_no_damping(name, getkey):
    """Damping a billionth of the trace: float32 normal matrices are singular here."""
    rows = jnp.asarray(systems(getkey(), TALL)["rank-deficient"], jnp.float32)
    damping = 1e-9 * float(jnp.sum(rows**2))
    g = jr.normal(getkey(), (12,), jnp.float64)
    solution = solved(SOLVERS[name](damping=damping), rows, g)
    assert relative_error(solution.v, exact(rows, g, damping)) < 1e-5


def test_a_float32_sketch_survives_dependent_rows_and_next_to_no_damping(getkey):
    """The literal algorithm is wrong by 90% here: its Schur complement cancels."""
    rows = jnp.asarray(systems(getkey(), WIDE)["rank-deficient"], jnp.float32)
    damping = 1e-9 * float(jnp.sum(rows**2))
    g = jr.normal(getkey(), (40,), jnp.float64)
    solution = solved(SOLVERS["SCFD"](damping=damping), rows, g)
    assert relative_error(solution.v, exact(rows, g, damping)) < 1e-5


@pytest.mark.parametrize("kind", [1, 2, 3], ids=["factored", "autodiff", "closed"])
def test_operators_give_the_answer_of_the_array(kind, getkey):
    everything = network_rows(getkey(), 50)
    g = jr.normal(getkey(), (21,), jnp.float64)
    expected = exact(everything[0], g, DAMPING)
    for name in ("SketchPCG", "SCFD"):
        v = solved(SOLVERS[name](damping=DAMPING), everything[kind], g).v
        assert relative_error(v, expected) < EXACT[name][0], name


@pytest.mark.parametrize("name", ["Explicit", "Woodbury", "Diagonal", "RankOne"])
@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 2**31),
    scale=st.sampled_from([1e-6, 1e-2, 1.0, 1e3]),
    damping=st.sampled_from([1e-3, 1.0, 1e2]),
)
def test_inverses_are_symmetric_positive_and_bounded(name, seed, scale, damping):
    """`0 < u.Au <= u.u / damping` and `u.Av == v.Au`, whatever the rows."""
    solver = SOLVERS[name](damping=damping)
    key, u_key, v_key = jr.split(jr.key(seed), 3)
    rows = scale * decaying_rows(key, *TALL)
    u = jnp.asarray(generator(u_key).normal(size=12))
    v = jnp.asarray(generator(v_key).normal(size=12))
    a_u, a_v = solved(solver, rows, u).v, solved(solver, rows, v).v
    bound = float(u @ u) / damping
    assert 0 < float(u @ a_u) <= bound * (1 + 1e-9)
    size = np.sqrt(float((u @ u) * (v @ v))) / damping
    # Cancellation in the direct formulas costs digits as scale^2 / damping grows.
    assert abs(float(u @ a_v - v @ a_u)) <= 1e-9 * size


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**31), power=st.integers(-40, 40))
def test_answers_scale_with_the_system(seed, power):
    """Rows times s and damping times s^2 divide the answer by s^2, exactly."""
    key, g_key = jr.split(jr.key(seed))
    rows, scale = decaying_rows(key, *TALL), 2.0**power
    g = jr.normal(g_key, (12,), jnp.float64)
    solver = SOLVERS["SketchPCG"]
    plain = solved(solver(damping=DAMPING), rows, g)
    scaled = solved(solver(damping=DAMPING * scale**2), scale * rows, g)
    np.testing.assert_allclose(scaled.v * scale**2, plain.v, rtol=1e-12)


class TestApproximations:
    """Each is exact for the matrix it puts in place of X^T X."""

    @pytest.fixture
    def problem(self, getkey):
        rows = decaying_rows(getkey(), *TALL)
        return rows, jr.normal(getkey(), (12,), jnp.float64)

    def dense(self, matrix, g):
        return np.linalg.solve(matrix + DAMPING * np.eye(len(g)), np.asarray(g))

    def test_diagonal_solves_with_the_diagonal(self, problem):
        rows, g = problem
        v = solved(Diagonal(damping=DAMPING), rows, g).v
        expected = self.dense(np.diag(np.diag(rows.T @ rows)), g)
        assert relative_error(v, expected) < 1e-10

    def test_identity_solves_with_the_mean_of_the_diagonal(self, problem):
        rows, g = problem
        v = solved(Identity(damping=DAMPING), rows, g).v
        expected = self.dense(np.trace(rows.T @ rows) / 12 * np.eye(12), g)
        assert relative_error(v, expected) < 1e-10

    def test_rank_one_solves_with_the_largest_direction(self, problem):
        rows, g = problem
        v = solved(RankOne(damping=DAMPING, num_steps=300), rows, g).v
        values, vectors = np.linalg.eigh(rows.T @ rows)
        top = values[-1] * np.outer(vectors[:, -1], vectors[:, -1])
        assert relative_error(v, self.dense(top, g)) < 1e-6  # Power iteration.

    def test_neumann_converges_to_the_dense_answer(self, problem):
        rows, g = problem
        solver = Neumann(damping=DAMPING, num_terms=100_000, tolerance=1e-9)
        solution = solved(solver, rows, g)
        assert solution.info.converged
        assert relative_error(solution.v, exact(rows, g, DAMPING)) < 1e-6

    def test_kfac_solves_with_kronecker_products_of_moments(self, getkey):
        a = np.asarray(jr.normal(getkey(), (30, 3), jnp.float64))
        d = np.asarray(jr.normal(getkey(), (30, 2), jnp.float64))
        w = np.asarray(jr.uniform(getkey(), (30,), jnp.float64))
        g = jr.normal(getkey(), (8,), jnp.float64)
        factor = Factor(jnp.asarray(a), jnp.asarray(d), bias=True)
        rows = FactoredRows([factor], jnp.asarray(w))
        v = solved(KFAC(damping=DAMPING), rows, g).v
        deltas = (d * w[:, None] ** 2).T @ d
        activations = (a * w[:, None] ** 2).T @ a / (w**2).sum()
        matrix = np.zeros((8, 8))
        matrix[:6, :6] = np.kron(deltas, activations)
        matrix[6:, 6:] = deltas
        assert relative_error(v, self.dense(matrix, g)) < 1e-10

    def test_kfac_refuses_rows_without_factors(self, problem):
        with pytest.raises(ValueError, match="needs `FactoredRows`"):
            KFAC(damping=DAMPING)(*problem)


class TestAsAFunction:
    """Solvers compose with `vmap` and automatic differentiation."""

    @pytest.mark.parametrize("name", ["Explicit", "SketchPCG", "SCFD"])
    def test_many_right_hand_sides_are_solved_together(self, name, getkey):
        solver = SOLVERS[name](damping=DAMPING)
        rows = decaying_rows(getkey(), *TALL)
        gs = jr.normal(getkey(), (3, 12), jnp.float64)
        together = jax.jit(jax.vmap(solver.__call__, in_axes=(None, 0)))(rows, gs)
        for g, v in zip(gs, together.v, strict=True):
            assert relative_error(v, np.asarray(solved(solver, rows, g).v)) < 1e-8

    @pytest.mark.parametrize("name", ["SketchPCG", "SCFD"])
    def test_the_pullback_to_g_is_another_solve(self, name, getkey):
        solver = SOLVERS[name](damping=DAMPING)
        rows = decaying_rows(getkey(), *TALL)
        g, w = jr.normal(getkey(), (2, 12), jnp.float64)
        gradient = jax.jit(jax.grad(lambda g: w @ solver(rows, g).v))(g)
        expected = np.asarray(solved(solver, rows, w).v)
        assert relative_error(gradient, expected) < 1e-7

    def test_the_derivative_to_the_rows_is_that_of_the_dense_solution(self, getkey):
        solver = SOLVERS["SketchPCG"](damping=DAMPING)
        rows = decaying_rows(getkey(), *TALL)
        g, w = jr.normal(getkey(), (2, 12), jnp.float64)

        def dense(rows):
            matrix = rows.T @ rows + DAMPING * jnp.eye(12)
            return w @ jnp.linalg.solve(matrix, g)

        ours = jax.jit(jax.grad(lambda rows: w @ solver(rows, g).v))(rows)
        expected = np.asarray(jax.jit(jax.grad(dense))(rows))
        assert relative_error(ours, expected) < 1e-6

    def test_another_damping_does_not_compile_again(self, getkey):
        rows = decaying_rows(getkey(), *TALL)
        g = jr.normal(getkey(), (12,), jnp.float64)
        function = jax.jit(lambda solver, rows, g: solver(rows, g).v)
        for damping in (0.1, jnp.asarray(0.2), 0.3):
            function(Identity(damping=damping), rows, g)
        for factor in (0.1, 0.2):
            function(Identity(damping=Relative(factor)), rows, g)
        assert function._cache_size() == 2
