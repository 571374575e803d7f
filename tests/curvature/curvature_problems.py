"""Rows, and the exact answers to compare with, for the curvature tests."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from hyperirl import curvature
from hyperirl.curvature import AutodiffRows, Factor, FactoredRows

TALL, WIDE = (40, 12), (12, 40)

# One set of static settings a solver, so that tests share what they compile.
SOLVERS = {
    "Explicit": curvature.Explicit,
    "Woodbury": curvature.Woodbury,
    "ConjugateGradient": lambda damping: curvature.ConjugateGradient(
        damping=damping, tolerance=1e-9
    ),
    "SketchPCG": lambda damping: curvature.SketchPCG(
        damping=damping, tolerance=1e-9, size=8
    ),
    "SCFD": lambda damping: curvature.SCFD(damping=damping, size=64, buffer=16),
    "FrequentDirections": lambda damping: curvature.FrequentDirections(
        damping=damping, size=64, buffer=16
    ),
    "RobustFrequentDirections": lambda damping: curvature.RobustFrequentDirections(
        damping=damping, size=64, buffer=16
    ),
    "Neumann": curvature.Neumann,
    "RankOne": curvature.RankOne,
    "Diagonal": curvature.Diagonal,
    "Identity": curvature.Identity,
    "Auto": curvature.Auto,
}


def exact(rows, g, damping):
    """The dense solution in float64, by NumPy."""
    x, g = np.asarray(rows, np.float64), np.asarray(g, np.float64)
    return np.linalg.solve(x.T @ x + damping * np.eye(x.shape[1]), g)


def relative_error(v, expected):
    """`|v - expected| / |expected|` in float64."""
    difference = np.asarray(v, np.float64) - expected
    return np.linalg.norm(difference) / np.linalg.norm(expected)


def generator(key):
    """NumPy's, from a JAX key: making data compiles nothing."""
    return np.random.default_rng(np.asarray(jr.key_data(key)))


def decaying_rows(key, num_rows, dim, *, decay=0.7, dtype=jnp.float64):
    """Rows whose spectrum falls like that of real scores, mixed by a rotation."""
    random = generator(key)
    mix, _ = np.linalg.qr(random.normal(size=(dim, dim)))
    rows = random.normal(size=(num_rows, dim)) * decay ** np.arange(dim)
    return jnp.asarray(rows @ mix, dtype)


def network_rows(key, num_rows, *, dtype=jnp.float64):
    """The score rows of a small network: dense, factored, autodiff, and closed over.

    The network is `tanh(W x + b) . u + c` with 3 inputs and 4 units: d = 12+4+4+1 = 21.
    """
    random = generator(key)
    inputs = random.normal(size=(num_rows, 3))
    parameters = random.normal(size=21)
    weights = random.uniform(size=num_rows)

    def function(p, x):
        hidden = jnp.tanh(x @ p[:12].reshape(4, 3).T + p[12:16][None, :])
        return hidden @ p[16:20] + p[20]

    hidden = np.tanh(inputs @ parameters[:12].reshape(4, 3).T + parameters[12:16])
    deltas = parameters[16:20] * (1 - hidden**2)
    ones = np.ones((num_rows, 1))
    cast = lambda x: jnp.asarray(x, dtype)
    factored = FactoredRows(
        [
            Factor(cast(inputs), cast(deltas), bias=True),
            Factor(cast(hidden), cast(ones)),
            Factor(None, cast(ones)),
        ],
        cast(weights),
    )
    inputs, parameters, weights = cast(inputs), cast(parameters), cast(weights)
    autodiff = AutodiffRows(function, parameters, weights, inputs)
    closed = AutodiffRows(lambda p: function(p, inputs), parameters, weights)
    dense = weights[:, None] * jax.jit(jax.jacfwd(function))(parameters, inputs)
    return dense, factored, autodiff, closed


solved = jax.jit(lambda solver, rows, g: solver(rows, g))
"""A solve under `jit`, compiled once a solver, shape and type."""
