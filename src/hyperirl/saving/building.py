"""Rewards and policies from their descriptions, with shapes in place of arrays.

A description may come from anybody, so each value is looked at before it is used, and
nothing is computed but shapes: a description cannot fill the memory.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr

from hyperirl.networks import MLP, Normalizer
from hyperirl.policies import AbstractHead, CategoricalHead, GaussianHead, Policy
from hyperirl.rewards import MLPReward, QuadraticReward, TableReward

_DTYPES = ("float32", "float64")
_MAX_SIZE = 10**7


def skeleton_of(what: str, kind: Any, architecture: Any) -> Any:
    """The module described; `ValueError` and the like if the description is not one."""
    builders = {
        ("reward", "table"): _build_table,
        ("reward", "quadratic"): _build_quadratic,
        ("reward", "mlp"): _build_mlp_reward,
        ("policy", "network"): _build_policy,
    }
    build = builders.get((what, kind) if isinstance(kind, str) else ("", ""))
    if build is None:
        known = ", ".join(name for thing, name in builders if thing == what)
        raise ValueError(f"known are {known}")
    return eqx.filter_eval_shape(lambda: build(_Fields(architecture)))


class _Fields:
    """Plain values by name. Each must have the right type, and none may be left."""

    def __init__(self, values: Any):
        if not isinstance(values, dict):
            raise ValueError(f"{str(values)[:40]} in place of a description")
        self.values = dict(values)

    def take(self, name: str, *kinds: type) -> Any:
        if name not in self.values:
            raise ValueError(f"`{name}` is missing")
        value = self.values.pop(name)
        # Python counts a bool as an integer.
        wrong_bool = isinstance(value, bool) and bool not in kinds
        if not isinstance(value, kinds) or wrong_bool:
            raise ValueError(f"`{name}` is {str(value)[:40]}")
        if isinstance(value, int) and abs(value) > _MAX_SIZE:
            raise ValueError(f"`{name}` is {value}, which is too large")
        return value

    def part(self, name: str) -> "_Fields":
        return _Fields(self.take(name, dict))

    def finish(self) -> None:
        if self.values:
            raise ValueError(f"`{sorted(self.values)[0][:40]}` is not known")


def _build_table(fields: _Fields) -> TableReward:
    table = _build_array(fields.part("table"))
    fields.finish()
    return TableReward(table)


def _build_quadratic(fields: _Fields) -> QuadraticReward:
    roots = [_build_array(fields.part(name)) for name in ("state_root", "action_root")]
    fields.finish()
    if any(root.ndim != 2 or root.shape[0] != root.shape[1] for root in roots):
        raise ValueError("a root is not a square matrix")
    return QuadraticReward(*roots)


def _build_mlp_reward(fields: _Fields) -> MLPReward:
    network = _build_network(fields.part("network"))
    num_actions = fields.take("num_actions", int, type(None))
    normalizer = _build_normalizer(fields)
    clamp = fields.take("clamp", float, int, type(None))
    fields.finish()
    sizes = [layer.weight.shape for layer in network.layers]
    observation_size = sizes[0][1] - (num_actions or 1)
    if sizes[-1][0] != 1 or observation_size < 1 or (num_actions or 1) < 1:
        raise ValueError("the network does not map an observation and an action to 1")
    _check_normalizer(normalizer, observation_size, exact=num_actions is not None)
    return MLPReward(network, num_actions, normalizer, clamp)


def _build_policy(fields: _Fields) -> Policy:
    network = _build_network(fields.part("network"))
    free = _build_array(fields.part("free"))
    head = _build_head(fields.part("head"))
    normalizer = _build_normalizer(fields)
    fields.finish()
    outputs = network.layers[-1].weight.shape[0]
    if (outputs, free.shape) != (head.network_size, (head.free_size,)):
        raise ValueError("the network does not fit the head")
    _check_normalizer(normalizer, network.layers[0].weight.shape[1], exact=True)
    return Policy(network, free, head, normalizer)


def _build_head(fields: _Fields) -> AbstractHead:
    kind = fields.take("kind", str)
    if kind == "categorical":
        head = CategoricalHead(fields.take("num_actions", int))
    elif kind == "gaussian":
        size, covariance = fields.take("size", int), fields.take("covariance", str)
        if covariance not in ("diagonal", "full", "state"):
            raise ValueError(f"`covariance` is {covariance[:40]!r}")
        bounds = fields.take("bounds", list, type(None))
        low, high = fields.take("log_scale_bounds", list)
        limits = (
            -math.inf if low is None else float(low),
            math.inf if high is None else float(high),
        )
        if bounds is not None:
            low, high = bounds
            bounds = (float(low), float(high))
        head = GaussianHead(size, covariance, bounds, limits)
    else:
        raise ValueError(f"the head {kind[:40]!r} is not known")
    fields.finish()
    return head


def _build_network(fields: _Fields) -> MLP:
    sizes = fields.take("sizes", list)
    use_bias, dtype = fields.take("use_bias", bool), _build_dtype(fields)
    activation = fields.take("activation", str)
    fields.finish()
    if activation != "tanh":
        raise ValueError(f"the activation {activation[:40]!r} is not known")
    _check_sizes(sizes)
    return MLP(sizes, key=jr.key(0), use_bias=use_bias, dtype=dtype)


def _build_normalizer(fields: _Fields) -> Normalizer | None:
    values = fields.take("normalizer", dict, type(None))
    if values is None:
        return None
    part = _Fields(values)
    mean, scale = _build_array(part.part("mean")), _build_array(part.part("scale"))
    part.finish()
    if mean.ndim != 1 or mean.shape != scale.shape:
        raise ValueError("the normalizer has shapes that do not fit")
    return Normalizer(mean, scale)


def _check_normalizer(
    normalizer: Normalizer | None, observation_size: int, *, exact: bool
) -> None:
    """`exact`: else observations may be smaller, for actions have an unknown size."""
    if normalizer is None:
        return
    size = normalizer.mean.shape[0]
    if size > observation_size or (exact and size < observation_size):
        raise ValueError("the normalizer does not fit the network")


def _build_array(fields: _Fields) -> jax.Array:
    shape, dtype = fields.take("shape", list), _build_dtype(fields)
    fields.finish()
    _check_sizes(shape)
    return jnp.zeros(tuple(shape), dtype)


def _build_dtype(fields: _Fields) -> str:
    dtype = fields.take("dtype", str)
    if dtype not in _DTYPES:
        raise ValueError(f"`dtype` is {dtype[:40]!r}")
    return dtype


def _check_sizes(sizes: list) -> None:
    plain = all(type(size) is int and 0 <= size <= _MAX_SIZE for size in sizes)
    if not plain or len(sizes) > 100:
        raise ValueError(f"the sizes {str(sizes)[:40]} are not usable")
