"""What an exported folder says about itself."""

from typing import Any

from hyperirl.export.hyperirl_numpy import Policy, Reader, Reward

_HEAD = """# A reward and a policy for NumPy

`hyperirl_numpy.py` reads the `.npz` files beside it. It needs NumPy and nothing else;
copy it wherever you like. Nothing in the data files is code.
"""

_REWARD = """
## reward.npz

Reads {reads}.

```python
from hyperirl_numpy import load_reward

reward = load_reward("reward.npz")
reward(observation, action)  # One step, or many with the same axes in front.
reward(state, action, next_state, done)  # The same, as `imitation` calls it.
```

{level}{discount}
"""

_DISCOUNT = """

It was learned with the discount {discount:g}: train with that one. With a smaller one
a policy may be drawn to where no demonstration went."""

_LEVEL = """The level, {level:.6g} a step, is included. The reward was learned beside an
entropy bonus; with the level it stands on its own, so train on it with any algorithm
and add nothing."""

_NO_LEVEL = """There is no level to add: train on it as it is."""

_POLICY = """
## policy.npz

Reads {reads}.

```python
from hyperirl_numpy import load_policy

policy = load_policy("policy.npz", seed=0)
action, _ = policy.predict(observation, deterministic=True)
policy.sample(observations)
policy.log_prob(observations, actions)
```
"""


def readme(reward: Reward | None, policy: Policy | None, about: dict[str, Any]) -> str:
    """How to use what is in the folder; `about` says where it comes from."""
    text = _HEAD
    if reward is not None:
        level = _LEVEL.format(level=reward.level) if reward.level else _NO_LEVEL
        discount = about.get("discount")
        known = isinstance(discount, float)  # It comes from a file.
        words = _DISCOUNT.format(discount=discount) if known else ""
        reads = _steps(reward.reads)
        text += _REWARD.format(reads=reads, level=level, discount=words)
    if policy is not None:
        text += _POLICY.format(reads=_steps(policy.reads))
    return text


def _steps(reads: Reader) -> str:
    """What it reads, in words."""
    size = reads.observation_size
    observations = "vectors" if size is None else f"{size} numbers"
    if reads.num_actions is not None:
        actions = f"integers from 0 to {reads.num_actions - 1}"
    else:
        size = reads.action_size
        actions = "vectors" if size is None else f"vectors of {size} numbers"
    return f"observations as {observations} and actions as {actions}"
