"""The demonstrations of a run: kept in its folder, and pinned by their content.

So whoever goes on with a run, or judges it, has the ones it learned from or an error.
Bundled ones are part of the package, and only pinned.
"""

from hyperirl import demos
from hyperirl.demos import Demos
from hyperirl.learning.config import LearnConfig, from_dict
from hyperirl.learning.setup import load_demos
from hyperirl.runs import RunError, RunFolder

_PIN, _KEPT = "demos.json", "demos.npz"


def demos_of(folder: RunFolder, given: Demos | None = None) -> Demos:
    """What a run learns from, or has learned from.

    Args:
        folder: Of the run; from the first call on it holds its demonstrations.
        given: The demonstrations, if they were handed over and not named.
    """
    config = from_dict(folder.config)
    pin = folder.load_json(_PIN)
    if pin is None:
        loaded = load_demos(config) if given is None else as_kept(given)
        _keep(folder, config, loaded, bundled=given is None and _is_bundled(config))
        return loaded
    if not isinstance(pin, dict) or set(pin) != {"sha256", "bundled"}:
        raise RunError(f"{folder.path / _PIN} is damaged; restore it, or learn again.")
    source = load_demos(config) if pin["bundled"] else demos.load(_path(folder))
    for found in (source, *([] if given is None else [as_kept(given)])):
        if demos.content_hash(found) != pin["sha256"]:
            raise RunError(
                f"These demonstrations are not those that the run in {folder.path} "
                "learned from: their content differs. Restore them, or learn again in "
                "another folder."
            )
    return source


def as_kept(given: Demos) -> Demos:
    """As they are when they are read from a folder: padded to their own length."""
    return demos.from_flat(demos.to_flat(given), given.provenance)


def _keep(folder: RunFolder, config: LearnConfig, loaded: Demos, *, bundled: bool):
    if not bundled:
        demos.save(loaded, _path(folder), overwrite=True)
    pin = {"sha256": demos.content_hash(loaded), "bundled": bundled}
    folder.save_json(_PIN, pin)  # Last: with it the demonstrations are whole.


def _path(folder: RunFolder):
    return folder.path / _KEPT


def _is_bundled(config: LearnConfig) -> bool:
    return (config.demos or config.env) in demos.bundled
