"""Rewards and policies that hyperirl learned, with NumPy alone.

    from hyperirl_numpy import load_policy, load_reward

    reward = load_reward("reward.npz")
    reward(observation, action)  # One step, or many with the same axes in front.
    reward(state, action, next_state, done)  # The same, as `imitation` calls it.

    policy = load_policy("policy.npz", seed=0)
    action, _ = policy.predict(observation, deterministic=True)

Copy this file anywhere: it needs nothing else of hyperirl, and it runs no code that a
data file brings. docs/export.md of hyperirl specifies the files for other languages.
"""

import json
import math
from typing import Any

import numpy as np

VERSION = 2  # Of the format of rewards and policies.
Values = np.ndarray | np.generic  # A number alone is of NumPy's scalars.
REACH = 2.0  # Of the inputs of a polynomial, in standard deviations.
_CHUNK = 8192  # Steps at a time: what is between the layers stays in the cache.


class ExportError(ValueError):
    """A file or a module that cannot be used here: why not, and what to do."""


def load_reward(path: Any) -> "Reward":
    """The reward in a `.npz` file that hyperirl wrote."""
    described, arrays = _read("reward", path)
    return make_reward(described, arrays)


def load_policy(path: Any, *, seed: int | None = None) -> "Policy":
    """The policy in a `.npz` file that hyperirl wrote; `seed` decides its samples."""
    described, arrays = _read("policy", path)
    return make_policy(described, arrays, seed=seed)


def make_reward(described: dict, arrays: dict) -> "Reward":
    """The reward that a description and its arrays, by their names, stand for."""
    return _of_kind("reward", _REWARDS, described, Arrays(arrays, "tree"))


def make_policy(described: dict, arrays: dict, *, seed: int | None = None) -> "Policy":
    """The policy that a description and its arrays, by their names, stand for."""
    if described["kind"] != Policy.kind:
        raise _unknown("policy", described)
    return Policy(described, Arrays(arrays, "tree"), seed=seed)


class Arrays:
    """The arrays of one part of a module: those whose names begin with its place."""

    def __init__(self, arrays: dict, place: str):
        self.arrays, self.place = arrays, place

    def part(self, place: str) -> "Arrays":
        """Those of a part of this part."""
        return Arrays(self.arrays, self.place + place)

    def __getitem__(self, name: str) -> np.ndarray:
        if self.place + name not in self.arrays:
            raise ExportError(f"The array `{self.place + name}` is missing.")
        return self.arrays[self.place + name]


class Network:
    """Linear layers with tanh between them; acts on the last axis."""

    def __init__(self, described: dict, arrays: Arrays):
        if described["activation"] != "tanh":
            raise ExportError(f"The activation {described['activation']} is not known.")
        layers = [
            arrays.part(f".layers[{i}]") for i in range(len(described["sizes"]) - 1)
        ]
        self.weights = [np.ascontiguousarray(layer[".weight"].T) for layer in layers]
        zeros = [np.zeros(weight.shape[1], weight.dtype) for weight in self.weights]
        self.biases = zeros
        if described["use_bias"]:
            self.biases = [layer[".bias"] for layer in layers]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The outputs."""
        return self.after_first(x @ self.weights[0] + self.biases[0])

    def after_first(self, x: np.ndarray) -> np.ndarray:
        """The outputs, from what comes out of the first layer."""
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            x = np.tanh(x, out=x) @ weight
            x += bias
        return x


class Normalizer:
    """`(x - mean) / scale`; nothing if there is no description."""

    def __init__(self, described: dict | None, arrays: Arrays):
        self.absent = described is None
        if not self.absent:
            self.mean, self.scale = arrays[".mean"], arrays[".scale"]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Shifts and scales the last axis."""
        return x if self.absent else (x - self.mean) / self.scale


class Reader:
    """Makes arrays of what is given, and refuses what does not fit."""

    def __init__(self, what: str, dtype: Any):
        self.what, self.dtype = what, dtype
        self.observation_size: int | None = None  # None: not known.
        self.num_actions: int | None = None  # None: actions are vectors.
        self.action_size: int | None = None  # Of a vector; None: not known.

    def observation(self, observation: Any) -> np.ndarray:
        """Numbers of the right type: a vector, or many."""
        x = np.asarray(observation, self.dtype)
        size = self.observation_size
        if x.ndim == 0 or (size is not None and x.shape[-1] != size):
            wanted = "as vectors" if size is None else f"of {size} numbers"
            raise ValueError(
                f"This {self.what} reads observations {wanted}, got shape {x.shape}."
            )
        return x

    def action(self, action: Any, batch: tuple[int, ...]) -> np.ndarray:
        """One action for each observation."""
        if self.num_actions is None:
            a, size = np.asarray(action, self.dtype), self.action_size
            fits = a.shape[:-1] == batch and a.ndim > 0 and size in (None, a.shape[-1])
            wanted = (*batch, "size of an action" if size is None else size)
        else:
            a, wanted = np.asarray(action), batch
            fits = a.shape == batch
        if not fits:
            raise ValueError(
                f"This {self.what} reads actions of shape {wanted}, got {a.shape}."
            )
        if self.num_actions is not None:
            self._check_choices(a, self.num_actions)
        return a

    def _check_choices(self, a: np.ndarray, num_actions: int) -> None:
        if a.dtype.kind in "iu":
            if a.ndim == 0:  # Much quicker for one.
                right = 0 <= int(a) < num_actions
            else:
                right = not ((a < 0) | (a >= num_actions)).any()
            if right:
                return
        raise ValueError(
            f"This {self.what} reads actions as integers from 0 to {num_actions - 1}, "
            f"got {a.dtype} {str(a)[:60]}."
        )


class Reward:
    """A number for an observation and an action, or one for each of many."""

    reads: Reader
    level = 0.0  # What is added to every step of what was learned; included.

    def __call__(
        self,
        observation: Any,
        action: Any,
        next_observation: Any = None,
        done: Any = None,
    ) -> Values:
        """The reward; it does not depend on the last two."""
        x = self.reads.observation(observation)
        a = self.reads.action(action, x.shape[:-1])
        if x.ndim != 2 or len(x) <= _CHUNK:
            return self.value(x, a)
        starts = range(0, len(x), _CHUNK)
        parts = [self.value(x[i : i + _CHUNK], a[i : i + _CHUNK]) for i in starts]
        return np.concatenate(parts)

    def value(self, x: np.ndarray, a: np.ndarray) -> Values:
        """The reward of observations and actions that fit."""
        raise NotImplementedError


class TableReward(Reward):
    """`table[state, action]`; observations are one-hot states."""

    kind = "table"

    def __init__(self, described: dict, arrays: Arrays):
        self.columns = np.ascontiguousarray(arrays[".table"].T)
        self.reads = Reader("reward", self.columns.dtype)
        self.reads.num_actions, self.reads.observation_size = self.columns.shape

    def value(self, x, a):
        return (x * self.columns[a]).sum(-1)


class QuadraticReward(Reward):
    """`-(s' Q s + a' R a)` with `Q = state_root state_root'` and `R` likewise."""

    kind = "quadratic"

    def __init__(self, described: dict, arrays: Arrays):
        self.state_root, self.action_root = (
            arrays[".state_root"],
            arrays[".action_root"],
        )
        self.reads = Reader("reward", self.state_root.dtype)
        self.reads.observation_size = len(self.state_root)
        self.reads.action_size = len(self.action_root)

    def value(self, x, a):
        costs = ((x @ self.state_root) ** 2).sum(-1)
        return -costs - ((a @ self.action_root) ** 2).sum(-1)


class MLPReward(Reward):
    """A network on the normalized observation and the action (one-hot if a choice)."""

    kind = "mlp"

    def __init__(self, described: dict, arrays: Arrays):
        self.network = Network(described["network"], arrays.part(".network"))
        self.normalizer = Normalizer(
            described["normalizer"], arrays.part(".normalizer")
        )
        self.clamp = described["clamp"]
        inputs = len(self.network.weights[0])
        self.reads = reads = Reader("reward", self.network.weights[0].dtype)
        reads.num_actions = described["num_actions"]
        if reads.num_actions is not None:
            reads.observation_size = inputs - reads.num_actions
        elif not self.normalizer.absent:
            reads.observation_size = len(self.normalizer.mean)
            reads.action_size = inputs - reads.observation_size
        size = reads.observation_size
        # A one-hot vector picks a row of the weights; here they hold the bias too.
        self.rows = self.network.weights[0][size:] + self.network.biases[0]

    def value(self, x, a):
        x, weight = self.normalizer(x), self.network.weights[0]
        size = x.shape[-1]
        if self.reads.num_actions is not None:
            first = x @ weight[:size] + self.rows[a]
        elif size + a.shape[-1] == len(weight):
            first = x @ weight[:size] + a @ weight[size:] + self.network.biases[0]
        else:
            raise ValueError(
                f"This reward reads {len(weight)} numbers, those of an observation and "
                f"of an action, got {size} and {a.shape[-1]}."
            )
        value = self.network.after_first(first)[..., 0]
        return value if self.clamp is None else value.clip(-self.clamp, self.clamp)


class PolynomialReward(Reward):
    """A polynomial of degree 2 in the normalized observation and action.

    If it is not mixed, the only products are squares of an action's numbers. Each
    choice has its own weights. An input counts as at most `REACH` from its mean.
    """

    kind = "polynomial"

    def __init__(self, described: dict, arrays: Arrays):
        weights = arrays[".weights"]
        self.normalizer = Normalizer(
            described["normalizer"], arrays.part(".normalizer")
        )
        size, of_action = len(self.normalizer.mean), described["action_size"]
        self.constant, self.linear = weights[:, 0], weights[:, 1 : 1 + size]
        self.products = np.zeros((len(weights), size, size), weights.dtype)
        if described["mixed"]:
            rows, columns = np.tril_indices(size)
        else:
            rows = columns = np.arange(size)[size - (of_action or 0) :]
        self.products[:, rows, columns] = weights[:, 1 + size :]
        self.reads = reads = Reader("reward", weights.dtype)
        reads.observation_size = size - (of_action or 0)
        reads.action_size = of_action
        reads.num_actions = len(weights) if of_action is None else None

    def value(self, x, a):
        row = a
        if self.reads.num_actions is None:
            x, row = np.concatenate([x, a], -1), 0
        z = self.normalizer(x).clip(-REACH, REACH)
        if self.reads.num_actions is None:
            quadratic = z @ self.products[0]
        else:
            quadratic = (z[..., None, :] @ self.products[row])[..., 0, :]
        return self.constant[row] + (z * (self.linear[row] + quadratic)).sum(-1)


class StandaloneReward(Reward):
    """What was learned, and the level: a reward to maximize without an entropy."""

    kind = "standalone"

    def __init__(self, described: dict, arrays: Arrays):
        learned = arrays.part(".learned")
        self.learned = _of_kind("reward", _REWARDS, described["soft"], learned)
        self.reads, self.added = self.learned.reads, arrays.part(".added")[".level"]
        self.added = self.added.astype(self.reads.dtype)
        self.level = float(self.added)

    def value(self, x, a):
        return self.learned.value(x, a) + self.added


class CategoricalHead:
    """Choices with probabilities `softmax(outputs)`."""

    kind = "categorical"

    def __init__(self, described: dict, free: np.ndarray):
        self.num_actions, self.action_size = described["num_actions"], None

    def draw_noise(
        self, rng: np.random.Generator, batch: tuple[int, ...]
    ) -> np.ndarray:
        """Uniform numbers in [0, 1)."""
        return np.asarray(rng.random(batch))

    def transform(self, z: np.ndarray, noise: np.ndarray) -> Values:
        """By inverting the distribution function."""
        cumulative = np.cumsum(np.exp(z - z.max(-1, keepdims=True)), -1)
        threshold = noise[..., None].astype(z.dtype) * cumulative[..., -1:]
        return (cumulative <= threshold).sum(-1)

    def mode(self, z: np.ndarray) -> Values:
        """The likeliest choice."""
        return np.argmax(z, -1)

    def log_prob(self, z: np.ndarray, action: np.ndarray) -> Values:
        """The log of the probability."""
        shifted = z - z.max(-1, keepdims=True)
        chosen = np.take_along_axis(shifted, action[..., None], -1)[..., 0]
        return chosen - np.log(np.exp(shifted).sum(-1))


class GaussianHead:
    """`mean + scale_tril @ noise`, squashed into a box by tanh if there are bounds."""

    kind = "gaussian"

    def __init__(self, described: dict, free: np.ndarray):
        self.num_actions, self.action_size = None, described["size"]
        self.bounds, self.free = described["bounds"], free
        low, high = described["log_scale_bounds"]  # None: no bound.
        self.limits = (
            -math.inf if low is None else low,
            math.inf if high is None else high,
        )
        self.full = None
        if described["covariance"] == "full":
            size = self.action_size
            self.full = np.diag(np.exp(np.clip(free[:size], *self.limits)))
            self.full[np.tril_indices(size, -1)] = free[size:]
            self.inverse = np.linalg.inv(self.full.astype(np.float64)).astype(
                free.dtype
            )

    def _split(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mean, and the log of the scale (of the factor's diagonal)."""
        size = self.action_size
        log_scale = z[..., size:] if z.shape[-1] > size else self.free[:size]
        return z[..., :size], np.clip(log_scale, *self.limits)

    def draw_noise(
        self, rng: np.random.Generator, batch: tuple[int, ...]
    ) -> np.ndarray:
        """Standard normal vectors."""
        return rng.standard_normal((*batch, self.action_size))

    def transform(self, z: np.ndarray, noise: np.ndarray) -> Values:
        """The action that this noise leads to."""
        (mean, log_scale), noise = self._split(z), noise.astype(z.dtype)
        spread = np.exp(log_scale) * noise if self.full is None else noise @ self.full.T
        return self._squash(mean + spread)

    def mode(self, z: np.ndarray) -> Values:
        """The mean, squashed."""
        return self._squash(self._split(z)[0])

    def log_prob(self, z: np.ndarray, action: np.ndarray) -> Values:
        """The log of the density of the action itself."""
        u, log_slope = self._unsquash(action)
        mean, log_scale = self._split(z)
        away = u - mean
        noise = (
            away * np.exp(-log_scale) if self.full is None else away @ self.inverse.T
        )
        constant = 0.5 * self.action_size * math.log(2 * math.pi)
        density = -0.5 * (noise**2).sum(-1) - log_scale.sum(-1) - constant
        return density - log_slope.sum(-1)

    def _squash(self, u: np.ndarray) -> Values:
        if self.bounds is None:
            return u
        low, high = self.bounds
        return (high + low) / 2 + (high - low) / 2 * np.tanh(u)

    def _unsquash(self, action: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`u`, and `log d action / d u`. The border is moved in by a relative 1e-6."""
        if self.bounds is None:
            return action, np.zeros_like(action)
        low, high = self.bounds
        unit = (action - (high + low) / 2) / ((high - low) / 2)
        u = np.arctanh(np.clip(unit, -1 + 1e-6, 1 - 1e-6))
        log_slope = 2 * (math.log(2) - u - np.logaddexp(-2 * u, 0))
        return u, math.log((high - low) / 2) + log_slope


class CensoredHead:
    """`clip(mean + scale * noise)`: a bound has the probability of all beyond it."""

    kind = "censored"

    def __init__(self, described: dict, free: np.ndarray):
        self.num_actions, self.action_size = None, described["size"]
        self.bounds, self.free = described["bounds"], free
        self.limits = described["log_scale_bounds"]

    def _split(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mean and the scale, in units of the action."""
        low, high = self.bounds
        size, half = self.action_size, (high - low) / 2
        log_scale = z[..., size:] if z.shape[-1] > size else self.free[:size]
        scale = half * np.exp(np.clip(log_scale, *self.limits))
        return (high + low) / 2 + half * z[..., :size], scale

    def draw_noise(
        self, rng: np.random.Generator, batch: tuple[int, ...]
    ) -> np.ndarray:
        """Standard normal vectors."""
        return rng.standard_normal((*batch, self.action_size))

    def transform(self, z: np.ndarray, noise: np.ndarray) -> Values:
        """The action that this noise leads to."""
        mean, scale = self._split(z)
        return np.clip(mean + scale * noise.astype(z.dtype), *self.bounds)

    def mode(self, z: np.ndarray) -> Values:
        """The mean, clipped."""
        return np.clip(self._split(z)[0], *self.bounds)

    def log_prob(self, z: np.ndarray, action: np.ndarray) -> Values:
        """The log of a probability at a bound, and of a density between them."""
        (low, high), (mean, scale) = self.bounds, self._split(z)
        edge = 1e-6 * (high - low) / 2
        away = (action - mean) / scale
        inside = -0.5 * away**2 - np.log(scale) - 0.5 * math.log(2 * math.pi)
        at_low, at_high = (
            _log_phi((low - mean) / scale),
            _log_phi((mean - high) / scale),
        )
        found = np.where(action >= high - edge, at_high, inside)
        found = np.where(action <= low + edge, at_low, found)
        return found.sum(-1).astype(z.dtype)


def _log_phi(x: np.ndarray) -> np.ndarray:
    """The log of the probability that a standard normal number is below `x`."""
    x = np.asarray(x, np.float64)
    near, far = np.maximum(x, -20.0), np.minimum(x, -20.0)
    erfc = np.vectorize(math.erfc, otypes=[np.float64])
    tail = -0.5 * far**2 - np.log(-far) - 0.5 * math.log(2 * math.pi)
    tail += np.log1p(-1 / far**2 + 3 / far**4)
    return np.where(x > -20.0, np.log(0.5 * erfc(-near / math.sqrt(2))), tail)


class Policy:
    """A distribution over actions for every observation."""

    kind = "network"

    def __init__(self, described: dict, arrays: Arrays, *, seed: int | None = None):
        self.network = Network(described["network"], arrays.part(".network"))
        self.normalizer = Normalizer(
            described["normalizer"], arrays.part(".normalizer")
        )
        head = {cls.kind: cls for cls in (CategoricalHead, GaussianHead, CensoredHead)}
        if described["head"]["kind"] not in head:
            raise _unknown("policy", described["head"])
        self.head = head[described["head"]["kind"]](described["head"], arrays[".free"])
        self.rng = np.random.default_rng(seed)
        self.reads = Reader("policy", self.network.weights[0].dtype)
        self.reads.observation_size = len(self.network.weights[0])
        self.reads.num_actions = self.head.num_actions
        self.reads.action_size = self.head.action_size

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> tuple[Values, Any]:
        """Actions, and the state as it was given: as in Stable-Baselines3."""
        if deterministic:
            return self.mode(observation), state
        return self.sample(observation), state

    def mode(self, observation: Any) -> Values:
        """The likeliest choice, or the mean within bounds, for every observation."""
        return self.head.mode(self._outputs(observation))

    def sample(self, observation: Any) -> Values:
        """An action for every observation, by chance."""
        z = self._outputs(observation)
        return self.head.transform(z, self.head.draw_noise(self.rng, z.shape[:-1]))

    def act(self, observation: Any, noise: Any) -> Values:
        """The actions that this noise leads to; see `draw_noise` of the heads."""
        return self.head.transform(self._outputs(observation), np.asarray(noise))

    def log_prob(self, observation: Any, action: Any) -> Values:
        """The log-probability (or log-density) of every action."""
        z = self._outputs(observation)
        return self.head.log_prob(z, self.reads.action(action, z.shape[:-1]))

    def _outputs(self, observation: Any) -> np.ndarray:
        return self.network(self.normalizer(self.reads.observation(observation)))


_REWARDS = {
    cls.kind: cls
    for cls in (
        TableReward,
        QuadraticReward,
        MLPReward,
        PolynomialReward,
        StandaloneReward,
    )
}


def _of_kind(what: str, kinds: dict, described: dict, arrays: Arrays) -> Any:
    if described["kind"] not in kinds:
        raise _unknown(what, described)
    return kinds[described["kind"]](described, arrays)


def _unknown(what: str, described: dict) -> ExportError:
    name = str(described.get("class", described["kind"]))[:40]
    return ExportError(
        f"A {what} of the class {name} has no form in NumPy, only those that hyperirl "
        "brings have one; call it with JAX, or write the formula by hand."
    )


def _read(what: str, path: Any) -> tuple[dict, dict]:
    """What a file says about its module, and the arrays."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as members:
            arrays = {name: members[name] for name in members.files}
        saved = json.loads(arrays.pop("metadata").tobytes())["metadata"]
        found, version = saved["format"], saved["version"]
        described = {"kind": saved["kind"], **saved["architecture"]}
    except FileNotFoundError:
        raise
    except Exception as error:  # Whatever another file makes NumPy raise.
        raise ExportError(
            f"{path} is not a {what} that hyperirl wrote, or it is damaged ({error})."
        ) from error
    if found != f"hyperirl {what}":
        raise ExportError(f"{path} holds a {str(found)[:40]}, not a {what}.")
    if version != VERSION:
        raise ExportError(
            f"{path} has version {str(version)[:20]} of the format, and this module "
            f"reads version {VERSION}; write it again with `hyperirl export`."
        )
    return described, arrays
