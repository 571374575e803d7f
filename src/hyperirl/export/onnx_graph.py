"""Rewards and policies as ONNX graphs; needs the package onnx.

They read batches: `observation` (steps x size) and `action` (steps, or steps x size). A
reward gives `reward` (steps); a policy the deterministic `action` and what the
distribution is made of: the `logits` of choices, or the `mean` of the Gaussian before
it is squashed.
"""

import functools
from typing import Any

import numpy as np

from hyperirl.export import hyperirl_numpy
from hyperirl.export.hyperirl_numpy import REACH, ExportError

_OPSET, _IR_VERSION = 17, 8  # Of 2022: most readers know them.


class Graph:
    """Collects operations; a value is known by its name."""

    def __init__(self):
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, operation: str, *inputs: str, **attributes: Any) -> str:
        """The output of an operation."""
        name = f"value{len(self.nodes)}"
        node = _onnx().helper.make_node(operation, inputs, [name], **attributes)
        self.nodes.append(node)
        return name

    def constant(self, array: Any) -> str:
        """An array that is part of the graph."""
        name = f"constant{len(self.constants)}"
        tensor = _onnx().numpy_helper.from_array(np.asarray(array), name)
        self.constants.append(tensor)
        return name

    def sum(self, value: str) -> str:
        """Over the last axis."""
        axes = self.constant(np.array([-1], np.int64))
        return self.add("ReduceSum", value, axes, keepdims=0)

    def finish(self, inputs: list[Any], outputs: dict[str, Any]) -> bytes:
        """The file; `outputs` are described by the values they get."""
        helper = _onnx().helper
        for value, described in outputs.items():
            self.nodes.append(helper.make_node("Identity", [value], [described.name]))
        graph = helper.make_graph(
            self.nodes,
            "hyperirl",
            inputs,
            list(outputs.values()),
            initializer=self.constants,
        )
        opset = [helper.make_opsetid("", _OPSET)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=_IR_VERSION)
        _onnx().checker.check_model(model)
        return model.SerializeToString()


def reward_graph(reward: hyperirl_numpy.Reward) -> bytes:
    """A reward as the bytes of an `.onnx` file; the level is included."""
    graph, reads = Graph(), reward.reads
    value = _value(reward, graph, "observation", "action")
    inputs = [_observation(reads), _action(reads)]
    return graph.finish(inputs, {value: _described("reward", reads.dtype)})


def policy_graph(policy: hyperirl_numpy.Policy) -> bytes:
    """A policy as the bytes of an `.onnx` file: the action it takes without chance."""
    graph, head, dtype = Graph(), policy.head, policy.reads.dtype
    z = _normalized(policy.normalizer, graph, "observation")
    z = _layers(policy.network, graph, z)
    if head.action_size is None:
        action = graph.add("ArgMax", z, axis=-1, keepdims=0)
        outputs = {z: _described("logits", dtype, head.num_actions)}
    else:
        bounds = [graph.constant(np.array([n])) for n in (0, head.action_size, -1)]
        mean = graph.add("Slice", z, *bounds)
        action = _bounded(head, graph, graph.add("Identity", mean), dtype)
        outputs = {mean: _described("mean", dtype, head.action_size)}
    outputs[action] = _action(policy.reads)
    return graph.finish([_observation(policy.reads)], outputs)


@functools.singledispatch
def _value(reward: Any, graph: Graph, x: str, a: str) -> str:
    raise ExportError(f"A {type(reward).__name__} has no form in ONNX.")


@_value.register
def _(reward: hyperirl_numpy.TableReward, graph: Graph, x: str, a: str) -> str:
    columns = graph.add("Gather", graph.constant(reward.columns), a, axis=0)
    return graph.sum(graph.add("Mul", x, columns))


@_value.register
def _(reward: hyperirl_numpy.QuadraticReward, graph: Graph, x: str, a: str) -> str:
    costs = []
    for value, root in ((x, reward.state_root), (a, reward.action_root)):
        rooted = graph.add("MatMul", value, graph.constant(root))
        costs.append(graph.sum(graph.add("Mul", rooted, rooted)))
    return graph.add("Neg", graph.add("Add", *costs))


@_value.register
def _(reward: hyperirl_numpy.MLPReward, graph: Graph, x: str, a: str) -> str:
    x = _normalized(reward.normalizer, graph, x)
    num_actions = reward.reads.num_actions
    if num_actions is not None:
        eye = graph.constant(np.eye(num_actions, dtype=reward.reads.dtype))
        a = graph.add("Gather", eye, a, axis=0)
    output = _layers(reward.network, graph, graph.add("Concat", x, a, axis=-1))
    value = graph.sum(output)  # Of one number: drops its axis.
    if reward.clamp is None:
        return value
    limits = np.array([-reward.clamp, reward.clamp], reward.reads.dtype)
    return graph.add("Clip", value, *(graph.constant(limit) for limit in limits))


@_value.register
def _(reward: hyperirl_numpy.PolynomialReward, graph: Graph, x: str, a: str) -> str:
    limits = np.array([-REACH, REACH], reward.reads.dtype)
    if reward.reads.num_actions is None:
        x = graph.add("Concat", x, a, axis=-1)
        weights = [graph.constant(w) for w in _weights(reward)]
    else:
        weights = [
            graph.add("Gather", graph.constant(w), a, axis=0) for w in _weights(reward)
        ]
    constant, linear, products = weights
    z = _normalized(reward.normalizer, graph, x)
    z = graph.add("Clip", z, *(graph.constant(limit) for limit in limits))
    row = graph.add("Unsqueeze", z, graph.constant(np.array([-2], np.int64)))
    multiplied = graph.add("MatMul", row, products)
    slope = graph.add(
        "Add",
        linear,
        graph.add("Squeeze", multiplied, graph.constant(np.array([-2], np.int64))),
    )
    return graph.add("Add", constant, graph.sum(graph.add("Mul", z, slope)))


def _weights(reward: hyperirl_numpy.PolynomialReward) -> list[np.ndarray]:
    """Constant, linear and quadratic ones; of the only row where there are no rows."""
    every = [reward.constant, reward.linear, reward.products]
    one = [np.asarray(part[0]) for part in every]
    return every if reward.reads.num_actions else one


@_value.register
def _(reward: hyperirl_numpy.StandaloneReward, graph: Graph, x: str, a: str) -> str:
    learned = _value(reward.learned, graph, x, a)
    return graph.add("Add", learned, graph.constant(reward.added))


def _normalized(normalizer: hyperirl_numpy.Normalizer, graph: Graph, x: str) -> str:
    if normalizer.absent:
        return x
    shifted = graph.add("Sub", x, graph.constant(normalizer.mean))
    return graph.add("Div", shifted, graph.constant(normalizer.scale))


def _layers(network: hyperirl_numpy.Network, graph: Graph, x: str) -> str:
    layers = zip(network.weights, network.biases, strict=True)
    for i, (weight, bias) in enumerate(layers):
        x = graph.add("Tanh", x) if i else x
        product = graph.add("MatMul", x, graph.constant(weight))
        x = graph.add("Add", product, graph.constant(bias))
    return x


@functools.singledispatch
def _bounded(head: Any, graph: Graph, mean: str, dtype: Any) -> str:
    """The mean as an action."""
    raise ExportError(f"A {type(head).__name__} has no form in ONNX.")


@_bounded.register
def _(head: hyperirl_numpy.GaussianHead, graph: Graph, mean: str, dtype: Any) -> str:
    if head.bounds is None:
        return mean
    return _in_box(head, graph, graph.add("Tanh", mean), dtype)


@_bounded.register
def _(head: hyperirl_numpy.CensoredHead, graph: Graph, mean: str, dtype: Any) -> str:
    limits = [graph.constant(np.asarray(x, dtype)) for x in head.bounds]
    return graph.add("Clip", _in_box(head, graph, mean, dtype), *limits)


def _in_box(head: Any, graph: Graph, unit: str, dtype: Any) -> str:
    """From units of half the box, around its center, to actions."""
    low, high = head.bounds
    half = graph.constant(np.asarray((high - low) / 2, dtype))
    center = graph.constant(np.asarray((high + low) / 2, dtype))
    return graph.add("Add", graph.add("Mul", unit, half), center)


def _observation(reads: hyperirl_numpy.Reader) -> Any:
    return _described("observation", reads.dtype, reads.observation_size)


def _action(reads: hyperirl_numpy.Reader) -> Any:
    if reads.num_actions is not None:
        return _described("action", np.int64)
    return _described("action", reads.dtype, reads.action_size)


def _described(name: str, dtype: Any, *sizes: int | None) -> Any:
    """An input or an output; None is any size."""
    helper = _onnx().helper
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, element, ["steps", *sizes])


def _onnx() -> Any:
    try:
        import onnx  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ExportError(
            "ONNX files need the package onnx, which is not installed here; install it "
            "with `pip install onnx`, or export without them."
        ) from error
    return onnx
