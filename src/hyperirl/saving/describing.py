"""What rewards and policies are made of, as plain values that fit into JSON."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from hyperirl.networks import MLP, Normalizer
from hyperirl.policies import AbstractHead, CategoricalHead, GaussianHead, Policy
from hyperirl.rewards import LinearReward, MLPReward, QuadraticReward, TableReward
from hyperirl.saving.errors import SavingError


def describe(what: str, module: eqx.Module) -> tuple[str, dict[str, Any]]:
    """The kind and the architecture of a module."""
    if what == "policy" and type(module) is Policy:
        return "network", {
            "network": _describe_network(module.network),
            "free": _describe_array(module.free),
            "head": _describe_head(module.head),
            "normalizer": _describe_normalizer(module.normalizer),
        }
    if what == "reward" and type(module) is TableReward:
        return "table", {"table": _describe_array(module.table)}
    if what == "reward" and type(module) is QuadraticReward:
        roots = {
            "state_root": _describe_array(module.state_root),
            "action_root": _describe_array(module.action_root),
        }
        return "quadratic", roots
    if what == "reward" and type(module) is MLPReward:
        return "mlp", {
            "network": _describe_network(module.network),
            "num_actions": module.num_actions,
            "normalizer": _describe_normalizer(module.normalizer),
            "clamp": None if module.clamp is None else float(module.clamp),
        }
    if type(module) is LinearReward:
        raise SavingError(
            "A `LinearReward` has a Python function for its features, and a file that "
            "holds functions could run code; save `reward.weights` with `numpy.save`, "
            "and make the reward again with the same features."
        )
    known = (
        "a Policy" if what == "policy" else "TableReward, QuadraticReward, MLPReward"
    )
    raise SavingError(
        f"A {type(module).__name__} cannot be saved as a {what}, only {known}; save "
        "the arrays of your own classes with `hyperirl.runs.save_arrays`."
    )


def _describe_array(array: jax.Array) -> dict[str, Any]:
    return {"shape": list(array.shape), "dtype": str(array.dtype)}


def _describe_normalizer(normalizer: Normalizer | None) -> dict[str, Any] | None:
    if normalizer is None:
        return None
    parts = {"mean": normalizer.mean, "scale": normalizer.scale}
    return {name: _describe_array(array) for name, array in parts.items()}


def _describe_network(network: MLP) -> dict[str, Any]:
    if network.activation is not jnp.tanh:
        name = getattr(network.activation, "__name__", repr(network.activation))
        raise SavingError(
            f"The network has the activation `{name}`, and only `jax.numpy.tanh` is "
            "known when it is loaded again; use that, or save the arrays with "
            "`hyperirl.runs.save_arrays`."
        )
    weights = [layer.weight for layer in network.layers]
    return {
        "sizes": [weights[0].shape[1], *(weight.shape[0] for weight in weights)],
        "use_bias": network.layers[0].bias is not None,
        "dtype": str(weights[0].dtype),
        "activation": "tanh",
    }


def _describe_head(head: AbstractHead) -> dict[str, Any]:
    if type(head) is CategoricalHead:
        return {"kind": "categorical", "num_actions": head.num_actions}
    if type(head) is GaussianHead:
        finite = [float(x) if math.isfinite(x) else None for x in head.log_scale_bounds]
        return {
            "kind": "gaussian",
            "size": head.size,
            "covariance": head.covariance,
            "bounds": None if head.bounds is None else [float(x) for x in head.bounds],
            "log_scale_bounds": finite,  # None: not bounded on that side.
        }
    raise SavingError(
        f"A policy with a {type(head).__name__} cannot be saved, only with a "
        "CategoricalHead or a GaussianHead; save its arrays with "
        "`hyperirl.runs.save_arrays`."
    )
