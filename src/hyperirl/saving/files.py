"""Rewards and policies in files that can be shared: arrays plus JSON, never code.

A file says what it is (`format`, `version`, `kind`) and how it is built
(`architecture`). Loading builds that, takes the arrays, and refuses anything else.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from hyperirl.policies import Policy
from hyperirl.rewards import AbstractReward
from hyperirl.runs import ArraysError, load_arrays, load_metadata, save_arrays
from hyperirl.saving.building import skeleton_of
from hyperirl.saving.describing import describe
from hyperirl.saving.errors import SavingError

VERSION = 1


def save_reward(
    reward: AbstractReward,
    path: str | Path,
    *,
    metadata: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> Path:
    """Writes a reward to a `.npz` file; returns where.

    Args:
        reward: A `TableReward`, `QuadraticReward` or `MLPReward`.
        path: Of the file; `.npz` is added if it is not there.
        metadata: Kept in the file: where the reward comes from, as plain values.
        overwrite: Whether a file that is there is replaced.
    """
    return _save("reward", reward, path, metadata, overwrite)


def load_reward(path: str | Path) -> AbstractReward:
    """The reward in a file that `save_reward` wrote; call it as `r(obs, action)`."""
    return _load("reward", path)


def save_policy(
    policy: Policy,
    path: str | Path,
    *,
    metadata: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> Path:
    """Writes a policy to a `.npz` file; returns where. See `save_reward`."""
    return _save("policy", policy, path, metadata, overwrite)


def load_policy(path: str | Path) -> Policy:
    """The policy in a file that `save_policy` wrote."""
    return _load("policy", path)


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
    kind, architecture = describe(what, module)
    _check_described(what, module, kind, architecture)
    _check_finite(f"This {what}", module)
    described = {
        "format": f"hyperirl {what}",
        "version": VERSION,
        "kind": kind,
        "architecture": architecture,
        "metadata": dict(metadata or {}),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    save_arrays(path, module, described)
    return path


def _load(what: str, path: str | Path) -> Any:
    path = Path(path)
    path = path if path.exists() else _with_suffix(path)
    try:
        described = load_metadata(path)
        if described.get("format") != f"hyperirl {what}":
            found = str(described.get("format", "something else"))[:40]
            raise SavingError(
                f"{path} holds {found}, not a {what}; give a file that "
                f"`hyperirl.saving.save_{what}` wrote."
            )
        if described.get("version") != VERSION:
            raise SavingError(
                f"{path} has version {str(described.get('version'))[:20]} of the "
                f"format, and this hyperirl reads version {VERSION}; install the "
                "hyperirl that wrote it."
            )
        kind, architecture = described.get("kind"), described.get("architecture")
        try:
            skeleton = skeleton_of(what, kind, architecture)
        except Exception as error:  # Whatever a made-up description makes us raise.
            reason = str(error).splitlines()[0][:200] if str(error) else repr(error)
            raise SavingError(
                f"{path} describes a {what} that this hyperirl does not know ({kind=}: "
                f"{reason}); install the hyperirl that wrote it."
            ) from error
        module = load_arrays(path, skeleton)
    except ArraysError as error:
        raise SavingError(str(error)) from error
    _check_finite(f"The {what} in {path}", module)
    return module


def _check_described(
    what: str, module: eqx.Module, kind: str, architecture: dict[str, Any]
) -> None:
    """What could not be read is not written."""
    reason = "layers with and without biases, for example"
    try:
        same = _same_structure(module, skeleton_of(what, kind, architecture))
    except ValueError as error:
        same, reason = False, str(error)
    if not same:
        raise SavingError(
            f"This {what} is not built the way hyperirl builds them ({reason}); save "
            "its arrays with `hyperirl.runs.save_arrays` instead."
        )


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


def _same_structure(module: PyTree, skeleton: PyTree) -> bool:
    shape = lambda leaf: (leaf.shape, leaf.dtype)
    left, right = eqx.filter(module, eqx.is_array), skeleton
    if jax.tree.structure(left) != jax.tree.structure(right):
        return False
    leaves = zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True)
    return all(shape(a) == shape(b) for a, b in leaves)
