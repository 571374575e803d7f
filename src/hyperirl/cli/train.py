"""`hyperirl train`: a policy for a reward."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

from hyperirl.cli.arguments import Flag, Maybe, command
from hyperirl.cli.workers import Workers

if TYPE_CHECKING:
    from hyperirl.inner import AbstractInnerSolver, Point


@command
class Train:
    """Train a policy on a reward, from scratch.

    The reward is the environment's own, or one from a file. The policy is the best one
    at a fixed temperature: it is paid for its entropy.

    For example:
        hyperirl train --env cartpole
        hyperirl train --env cartpole --reward runs/latest/reward.npz --out policy.npz
        hyperirl train --env pendulum --steps 2000000 --temperature 0.01
        hyperirl train --env lqr --solver sac --seconds 60
        hyperirl train --env tabular --solver exact
    """

    env: str = "cartpole"
    """cartpole, cartpole-fixed, lqr, lqr-clipped, pendulum, tabular, grid-world;
    gym:ID for one of Gymnasium's; or your own as MODULE:NAME, which is imported."""
    reward: Maybe[Path] = None
    """A reward from `hyperirl learn`; the environment's own by default."""
    solver: Literal["ppo", "sac", "reinforce", "exact"] = "ppo"
    """exact: in closed form (tabular, grid-world, and lqr with a quadratic reward)."""
    temperature: Maybe[float] = None
    """How much entropy is worth, against the reward; 0.1 by default, 1 for pendulum."""
    discount: float = 0.99
    """How much the next step is worth, against this one."""
    steps: int = 500_000
    """Environment steps."""
    seconds: Maybe[float] = None
    """Stop after this time, compilation included."""
    tolerance: Maybe[float] = None
    """Stop when the optimality gap is below this, by two standard errors."""
    learning_rate: Maybe[float] = None
    """Of the policy; each solver has its own default."""
    seed: int = 0
    """Decides everything random."""
    horizon: Maybe[int] = None
    """After how many steps episodes of an environment of Gymnasium's are cut; by
    default as it says."""
    scale: tyro.conf.OmitArgPrefixes[Workers] = Workers()
    out: Maybe[Path] = None
    """Where to write the policy, a .npz file."""
    overwrite: Flag = False
    """Replace the file if there is one."""

    def run(self) -> None:
        """Fails before the training, not after it, if the file must not be written."""
        if self.out is not None and self.out.exists() and not self.overwrite:
            raise ValueError(
                f"{self.out} already exists; choose another `--out`, or `--overwrite`."
            )
        self.scale.check_counted()
        with self.scale.ready():
            self._train()

    def _train(self) -> None:
        from hyperirl import inner, problem, saving, tasks
        from hyperirl.progress import progress_bar

        task = tasks.as_task(
            self.env,
            horizon=self.horizon,
            workers=self.scale.workers or 0,
            ray=self.scale.on_ray,
        )
        environment, temperature = task.environment, self.temperature
        if temperature is None:
            temperature = task.temperature
        reward = None if self.reward is None else saving.load_reward(self.reward)
        budget = inner.SolveBudget(self.steps, self.seconds, self.tolerance)
        with progress_bar(f"Policy for {self.env}", "compiling") as show:
            result = inner.train(
                environment,
                reward,
                problem=problem.problem(temperature, self.discount),
                solver=self._solver(environment),
                budget=budget,
                seed=self.seed,
                updates_per_call=500 if self.solver == "sac" else None,
                callback=lambda point: show(self._done(point), _summary(point)),
            )
        last = result.curve[-1]
        print(f"{last.steps:,} steps in {last.seconds:.1f} s: {_summary(last)}")
        if self.out is not None:
            path = saving.save_policy(result.policy, self.out, overwrite=self.overwrite)
            print(f"Wrote the policy to {path}.")

    def _solver(self, environment) -> "AbstractInnerSolver":
        from hyperirl import inner

        if self.solver == "exact":
            return inner.Exact()
        rate = self.learning_rate
        changes: dict[str, Any] = {} if rate is None else {"learning_rate": rate}
        if self.solver == "ppo":
            return inner.ppo_from_scratch(environment, **changes)
        if self.solver == "sac":
            return inner.SAC(**changes).fitting(environment)
        return inner.Reinforce(**changes)

    def _done(self, point: "Point") -> float:
        """The share of the budget that is used up."""
        shares = [point.steps / self.steps]
        if self.seconds is not None:
            shares.append(point.seconds / self.seconds)
        return min(max(shares), 1.0)


def _summary(point: "Point") -> str:
    report = point.report
    true, gap = point.true_return, float(report.gap)
    parts = []
    if math.isfinite(true):
        parts.append(f"true return {true:.2f} +- {point.true_return_error:.2f}")
    parts += [
        f"entropy {float(report.entropy):.3f}",
        f"gradient {float(report.gradient_norm):.3g} "
        f"+- {float(report.gradient_norm_error):.2g}",
    ]
    if math.isfinite(gap):
        parts.append(f"gap {gap:.3g} +- {float(report.gap_error):.2g}")
    return ", ".join(parts)
