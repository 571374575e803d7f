"""Learn reward functions from demonstrations.

```
import hyperirl as hi

demos = hi.demos.load("expert.npz")
result = hi.learn("cartpole", demos)
result.reward(observation, action)
result.save("reward")
reward = hi.load_reward("reward")
```
"""

import importlib
from typing import TYPE_CHECKING, Any

from hyperirl import _jax as _jax  # Before anything imports JAX.

if TYPE_CHECKING:
    from hyperirl import curvature as curvature
    from hyperirl import demos as demos
    from hyperirl import environments as environments
    from hyperirl.learning import learn as learn
    from hyperirl.learning import resume as resume
    from hyperirl.saving import load_policy as load_policy
    from hyperirl.saving import load_reward as load_reward

_MODULES = ("curvature", "demos", "environments")
_FUNCTIONS = {
    "learn": "hyperirl.learning",
    "resume": "hyperirl.learning",
    "load_policy": "hyperirl.saving",
    "load_reward": "hyperirl.saving",
}
__all__ = [*_MODULES, *_FUNCTIONS]


def __getattr__(name: str) -> Any:
    """Imports a part when it is first asked for: `import hyperirl` stays quick."""
    if name in _MODULES:
        return importlib.import_module(f"hyperirl.{name}")
    if name in _FUNCTIONS:
        return getattr(importlib.import_module(_FUNCTIONS[name]), name)
    raise AttributeError(f"module 'hyperirl' has no attribute {name!r}")
