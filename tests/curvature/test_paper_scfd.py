"""The sketches do what Algorithm 2 of the paper says, line by line."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from curvature_problems import decaying_rows, relative_error, solved

from hyperirl.curvature import SCFD, PaperSCFD, Shrinkage


class Algorithm2:
    """Algorithm 2 in NumPy, one line of code a line of the algorithm."""

    def __init__(self, m, d, regularization):
        self.m, self.d = m, d
        self.S = np.zeros((m, d))
        self.R = np.zeros((0, d))
        self.alpha = regularization
        self.D = np.eye(m) / regularization

    def append(self, x):
        self.R = np.vstack([self.R, x])
        if len(self.R) == self.m:
            Y = np.vstack([self.S, self.R])
            _, sigma, Vt = np.linalg.svd(Y, full_matrices=False)
            delta = sigma[self.m - 1] ** 2
            self.alpha = self.alpha + delta
            sigma_bar = np.sqrt(np.maximum(sigma[: self.m] ** 2 - delta, 0))
            self.S = np.diag(sigma_bar) @ Vt[: self.m]
            self.D = np.diag(1 / (sigma_bar**2 + self.alpha))
            self.R = np.zeros((0, self.d))

    def solve(self, g):
        if len(self.R) == 0:
            Z = self.S
            M = self.D
        else:
            C = self.S @ self.R.T
            P = self.D @ C
            K = self.R @ self.R.T - C.T @ P + self.alpha * np.eye(len(self.R))
            K_inv = np.linalg.inv(K)
            M = np.block(
                [[self.D + P @ K_inv @ P.T, -P @ K_inv], [-K_inv @ P.T, K_inv]]
            )
            Z = np.vstack([self.S, self.R])
        return (g - Z.T @ M @ Z @ g) / self.alpha


@pytest.fixture(params=[24, 27], ids=["no row pending", "three rows pending"])
def problem(request, getkey):
    rows = decaying_rows(getkey(), request.param, 10)
    g = jr.normal(getkey(), (10,), jnp.float64)
    reference = Algorithm2(4, 10, 0.05)
    for row in np.asarray(rows):
        reference.append(row)
    return rows, g, reference


@pytest.mark.parametrize(
    "solver",
    [
        PaperSCFD(damping=0.05, size=4),
        SCFD(damping=0.05, size=4, buffer=4, rule=Shrinkage.LAST),
    ],
    ids=["PaperSCFD", "SCFD"],
)
class TestAgainstTheTranscription:
    def test_the_solution_is_that_of_algorithm_2(self, solver, problem):
        rows, g, reference = problem
        solution = solved(solver, rows, g)
        assert relative_error(solution.v, reference.solve(np.asarray(g))) < 1e-10

    def test_the_certificate_is_the_share_of_shrinkage(self, solver, problem):
        rows, g, reference = problem
        certificate = solved(solver, rows, g).info.certificate
        shrinkage = reference.alpha - 0.05
        np.testing.assert_allclose(certificate, shrinkage / reference.alpha, rtol=1e-9)


def test_keeping_the_next_direction_shrinks_less_than_the_paper(getkey):
    rows = decaying_rows(getkey(), 40, 10)
    g = jr.normal(getkey(), (10,), jnp.float64)
    certificate = lambda solver: solved(solver, rows, g).info.certificate
    ours = certificate(SCFD(damping=0.05, size=4, buffer=4))
    assert ours < certificate(PaperSCFD(damping=0.05, size=4))


def test_one_row_is_kept_where_the_paper_keeps_none(getkey):
    """With sigma_m^2 and m = 1 everything is shrunk away."""
    rows = decaying_rows(getkey(), 12, 5)
    g = jr.normal(getkey(), (5,), jnp.float64)
    ours = solved(SCFD(damping=0.1, size=1, buffer=1), rows, g)
    assert ours.info.effective_dimension > 0.5
