"""The curvature solvers by themselves: `(X' X + damping) v = g` for a tall X.

They know nothing of rewards. Here X is the Jacobian of a small network over 4,000
inputs, as in a Gauss-Newton step. Run it: `python examples/curvature_alone.py`.
"""

import jax
import jax.numpy as jnp
import jax.random as jr

from hyperirl import curvature


def jacobian(rows: int, hidden: int) -> jax.Array:
    """Of a network with one hidden layer: a row for each of its inputs."""
    key, weight_key = jr.split(jr.key(0))
    weights = {
        "first": jr.normal(weight_key, (hidden, 8)) / 8**0.5,
        "last": jnp.ones(hidden) / hidden**0.5,
    }
    output = lambda weights, x: weights["last"] @ jnp.tanh(weights["first"] @ x)
    inputs = jr.normal(key, (rows, 8))
    slopes = jax.vmap(jax.grad(output), (None, 0))(weights, inputs)
    flat = [leaf.reshape(rows, -1) for leaf in jax.tree.leaves(slopes)]
    return jnp.concatenate(flat, axis=1) / rows**0.5


def main(rows: int = 4000, hidden: int = 64) -> dict[str, float]:
    """Every solver on the same system, against the exact answer."""
    X = jacobian(rows, hidden)
    g = X.T @ jnp.ones(rows)
    damping = curvature.Relative(0.01)  # One hundredth of the mean diagonal entry.
    exact = curvature.Explicit(damping=damping)(X, g).v
    solvers = {
        "Auto": curvature.Auto(damping=damping),
        "ConjugateGradient": curvature.ConjugateGradient(damping=damping),
        "SCFD, 128 rows": curvature.SCFD(damping=damping, size=128),
        "SCFD, 512 rows": curvature.SCFD(damping=damping, size=512),
        "Diagonal": curvature.Diagonal(damping=damping),
    }
    errors = {}
    for name, solver in solvers.items():
        solution = solver(X, g)
        difference = jnp.linalg.norm(solution.v - exact) / jnp.linalg.norm(exact)
        errors[name], bound = float(difference), float(solution.info.certificate)
        print(f"{name:18} error {errors[name]:8.1e}  certified {bound:8.1e}")

    # A sketch is data: made once, in pieces, and asked with any damping.
    sketch = curvature.empty_sketch(X.shape[1], size=128, dtype=X.dtype)
    for block in jnp.split(X, 4):
        sketch = sketch.append(block)
    for value in (1e-3, 1e-1):
        v = sketch.solve(value, g).v
        print(f"damping {value:g}: |v| = {float(jnp.linalg.norm(v)):.3f}")
    return errors


if __name__ == "__main__":
    main()
