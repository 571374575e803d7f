"""Rewards and policies in files that can be shared: arrays plus JSON, never code.

A file says what it is (`format`, `version`, `kind`) and how it is built
(`architecture`). Loading builds that, takes the arrays, and refuses anything else.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from hyperirl import describing
from hyperirl.networks import Normalizer
from hyperirl.policies import (
    AbstractPolicy,
    CategoricalHead,
    CensoredHead,
    GaussianHead,
    Policy,
)
from hyperirl.rewards import (
    AbstractReward,
    MLPReward,
    PolynomialReward,
    QuadraticReward,
    StandaloneReward,
    TableReward,
)
from hyperirl.runs import ArraysError, load_arrays, load_metadata, save_arrays
from hyperirl.saving.errors import SavingError
from hyperirl.saving.upgrading import with_level

VERSION = 2
_READABLE = (1, VERSION)

# All that a file may ask for: it never names code to import.
_KINDS = {
    cls.kind: cls
    for cls in (
        TableReward,
        QuadraticReward,
        MLPReward,
        PolynomialReward,
        StandaloneReward,
        Policy,
        CategoricalHead,
        GaussianHead,
        CensoredHead,
    )
}
_BASES = {"reward": AbstractReward, "policy": AbstractPolicy}

P = TypeVar("P", bound=AbstractPolicy)


def save_reward(
    reward: AbstractReward,
    path: str | Path,
    *,
    metadata: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> Path:
    """Writes a reward to a `.npz` file; returns where.

    Of a class of your own, and of a `LinearReward`, only the name and the arrays are
    kept: to load it, bring one like it.

    Args:
        reward: What to keep.
        path: Of the file; `.npz` is added if it is not there.
        metadata: Kept in the file: where the reward comes from, as plain values.
        overwrite: Whether a file that is there is replaced.
    """
    return _save("reward", reward, path, metadata, overwrite)


def load_reward(
    path: str | Path, *, like: AbstractReward | None = None
) -> AbstractReward:
    """The reward in a file that `save_reward` wrote; call it as `r(obs, action)`.

    Args:
        path: Of the file; `.npz` may be left out.
        like: For a class of your own: a reward with the same shapes. All but its
            arrays is kept.
    """
    described, reward = _load("reward", path, like)
    if described["version"] == 1:
        return with_level(reward, described.get("metadata"), path)
    return reward


def save_policy(
    policy: AbstractPolicy,
    path: str | Path,
    *,
    metadata: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> Path:
    """Writes a policy to a `.npz` file; returns where. See `save_reward`."""
    return _save("policy", policy, path, metadata, overwrite)


@overload
def load_policy(path: str | Path, *, like: None = None) -> Policy: ...


@overload
def load_policy(path: str | Path, *, like: P) -> P: ...


def load_policy(
    path: str | Path, *, like: AbstractPolicy | None = None
) -> AbstractPolicy:
    """The policy in a file that `save_policy` wrote. See `load_reward`."""
    return _load("policy", path, like)[1]


def _save(
    what: str,
    module: eqx.Module,
    path: str | Path,
    metadata: Mapping[str, Any] | None,
    overwrite: bool,
) -> Path:
    path = _with_suffix(path)
    if path.exists() and not overwrite:
        raise SavingError(
            f"{path} already exists and is not overwritten; choose another name, or "
            "pass `overwrite=True` if it is not needed any more."
        )
    architecture = _describe(what, module)
    _check_finite(f"This {what}", module)
    described = {
        "format": f"hyperirl {what}",
        "version": VERSION,
        "kind": architecture.pop("kind"),
        "architecture": architecture,
        "metadata": dict(metadata or {}),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    save_arrays(path, module, described)
    return path


def _load(what: str, path: str | Path, like: Any) -> tuple[dict[str, Any], Any]:
    """What the file says, and the module."""
    path = Path(path)
    path = path if path.exists() else _with_suffix(path)
    like = _own(like)
    try:
        described = load_metadata(path)
        _check_format(what, path, described)
        skeleton = _skeleton(what, path, described, like)
        _check_like(path, skeleton, like)
        module = load_arrays(path, skeleton)
    except ArraysError as error:
        raise SavingError(str(error)) from error
    _check_finite(f"The {what} in {path}", module)
    _check_scales(f"The {what} in {path}", module)
    return described, module


def _check_format(what: str, path: Path, described: dict[str, Any]) -> None:
    if described.get("format") != f"hyperirl {what}":
        found = str(described.get("format", "something else"))[:40]
        raise SavingError(
            f"{path} holds {found}, not a {what}; give a file that "
            f"`hyperirl.saving.save_{what}` wrote."
        )
    version = described.get("version")
    if type(version) is not int or version not in _READABLE:
        raise SavingError(
            f"{path} has version {str(version)[:20]} of the format, and this hyperirl "
            f"reads versions up to {VERSION}; install the hyperirl that wrote it."
        )


def _skeleton(what: str, path: Path, described: dict[str, Any], like: Any) -> Any:
    """The module that a file describes, with shapes in place of arrays."""
    kind, values = described.get("kind"), described.get("architecture")
    try:
        if not isinstance(values, dict) or "kind" in values:
            raise ValueError(f"{str(values)[:40]} in place of a description")
        values = {"kind": kind, **values}
        return describing.skeleton(values, _BASES[what], _KINDS, like)
    except describing.OwnClassError as error:
        brought = "" if like is None else f", not a {type(like).__name__}"
        raise SavingError(
            f"{path} holds a {what} of the class {error.name}, which a file cannot "
            f"make{brought}; pass `like=` with a {error.name} of the same shapes."
        ) from error
    except Exception as error:  # Whatever a made-up description makes us raise.
        reason = str(error).splitlines()[0][:200] if str(error) else repr(error)
        raise SavingError(
            f"{path} describes a {what} that this hyperirl does not know "
            f"(kind={str(kind)[:40]!r}: {reason}); install the hyperirl that wrote it."
        ) from error


def _check_like(path: Path, skeleton: Any, like: Any) -> None:
    """What is brought for nothing was brought by mistake."""
    found = _own(skeleton)
    if like is not None and type(like) is not type(found):
        raise SavingError(
            f"{path} holds a {type(found).__name__}, not a {type(like).__name__}; "
            "leave out `like=`, which is for classes of your own."
        )


def _own(module: Any) -> Any:
    """The part that may be of anybody's class: not what adds a level to it."""
    return module.soft if isinstance(module, AbstractReward) else module


def _describe(what: str, module: Any) -> dict[str, Any]:
    """What a module is made of. What could not be read is not written."""
    if not isinstance(module, _BASES[what]):
        raise SavingError(
            f"A {type(module).__name__} cannot be saved as a {what}, only a kind of "
            f"{_BASES[what].__name__}."
        )
    if any(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(module)):
        raise SavingError(
            f"This {what} holds NumPy arrays, and only JAX arrays are kept; make it "
            "with `jax.numpy`."
        )
    reason = "layers with and without biases, for example"
    try:
        described = describing.describe(module)
    except ValueError as error:
        raise SavingError(str(error)) from error
    try:
        skeleton = describing.skeleton(described, _BASES[what], _KINDS, _own(module))
        same = _same_structure(module, skeleton)
    except ValueError as error:
        same, reason = False, str(error)
    if not same:
        raise SavingError(
            f"This {what} is not built the way hyperirl builds them ({reason}); save "
            "its arrays with `hyperirl.runs.save_arrays` instead."
        )
    return described


def _with_suffix(path: str | Path) -> Path:
    path = Path(path)
    return path if path.suffix == ".npz" else path.with_name(f"{path.name}.npz")


def _check_finite(what: str, module: PyTree) -> None:
    arrays = jax.tree.leaves(eqx.filter(module, eqx.is_inexact_array))
    if not all(bool(jnp.isfinite(array).all()) for array in arrays):
        raise SavingError(
            f"{what} holds NaN or infinity, so it would answer nothing; take one from "
            "an earlier step of its run."
        )


def _check_scales(what: str, module: PyTree) -> None:
    is_normalizer = lambda part: isinstance(part, Normalizer)
    parts = jax.tree.leaves(module, is_leaf=is_normalizer)
    if not all(bool((p.scale > 0).all()) for p in parts if is_normalizer(p)):
        raise SavingError(
            f"{what} divides its inputs by a scale that is not positive; take one from "
            "an earlier step of its run."
        )


def _same_structure(module: PyTree, skeleton: PyTree) -> bool:
    shape = lambda leaf: (leaf.shape, leaf.dtype)
    left, right = eqx.filter(module, eqx.is_array), skeleton
    if jax.tree.structure(left) != jax.tree.structure(right):
        return False
    leaves = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(shape(a) == shape(b) for a, b in leaves)
