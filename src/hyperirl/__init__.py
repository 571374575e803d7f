"""Learn reward functions from demonstrations.

```
import hyperirl as hi

demos = hi.demos.load("expert.npz")
result = hi.learn("cartpole", demos)
result.reward(observation, action)
result.save("reward")
reward = hi.load_reward("reward")
hi.evaluate(result)
```
"""

import importlib
from typing import TYPE_CHECKING, Any

from hyperirl import _jax as _jax  # Before anything imports JAX.

if TYPE_CHECKING:
    from hyperirl import curvature as curvature
    from hyperirl import demos as demos
    from hyperirl import environments as environments
    from hyperirl import evaluation as evaluation
    from hyperirl import exact as exact
    from hyperirl import hypergradient as hypergradient
    from hyperirl import inner as inner
    from hyperirl import policies as policies
    from hyperirl import rewards as rewards
    from hyperirl import tasks as tasks
    from hyperirl import worlds as worlds
    from hyperirl import wrappers as wrappers
    from hyperirl.learning import Result as Result
    from hyperirl.learning import evaluate as evaluate
    from hyperirl.learning import learn as learn
    from hyperirl.learning import resume as resume
    from hyperirl.options import Options as Options
    from hyperirl.saving import load_policy as load_policy
    from hyperirl.saving import load_reward as load_reward
    from hyperirl.saving import save_policy as save_policy
    from hyperirl.saving import save_reward as save_reward
    from hyperirl.tasks import Task as Task
    from hyperirl.wrappers import RewardWrapper as RewardWrapper

    __version__: str

_MODULES = (
    "curvature demos environments evaluation exact hypergradient inner policies "
    "rewards tasks worlds wrappers"
).split()
_FROM = {
    "hyperirl.learning": ("Result", "evaluate", "learn", "resume"),
    "hyperirl.options": ("Options",),
    "hyperirl.saving": ("load_policy", "load_reward", "save_policy", "save_reward"),
    "hyperirl.tasks": ("Task",),
    "hyperirl.wrappers": ("RewardWrapper",),
}
_HOME = {name: module for module, names in _FROM.items() for name in names}
__all__ = [*_MODULES, *_HOME, "__version__"]


def __getattr__(name: str) -> Any:
    """Imports a part when it is first asked for: `import hyperirl` stays quick."""
    if name in _MODULES:
        return importlib.import_module(f"hyperirl.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("hyperirl")
    raise AttributeError(f"module 'hyperirl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
