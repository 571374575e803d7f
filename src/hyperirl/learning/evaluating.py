"""The one way to judge a run, used by the command, the experiments and benchmarks."""

from pathlib import Path
from typing import Any

from hyperirl import evaluation, saving
from hyperirl._jax import enable_compilation_cache
from hyperirl.evaluation import FreshTraining, RankingSet, Subject
from hyperirl.learning.given import Given
from hyperirl.learning.learn import reopen
from hyperirl.learning.result import Result
from hyperirl.learning.setup import standing_alone
from hyperirl.progress import progress_bar
from hyperirl.runs import RunError, RunFolder
from hyperirl.tasks import AnyTask


def evaluate(
    run: str | Path | Result,
    *,
    task: AnyTask | None = None,
    given: Given | None = None,
    seeds: int = 2,
    budget: int | None = None,
    transfer: bool = True,
    progress: bool = True,
    workers: int | None = None,
    ray: bool = False,
) -> dict[str, Any]:
    """Trains fresh policies on the learned reward, and measures what it is worth.

    A run that has a folder gets `evaluation.json`, and `picture.json` for its report.

    ```
    found = hyperirl.evaluate(result)
    found["env_return"]["mean"]
    ```

    Args:
        run: A result of `learn`, or the folder of a run.
        task: The environment of a folder, if that is not built in.
        given: Objects that the run of a folder was given: those it learned with.
        seeds: Fresh policies for each reward.
        budget: Environment steps for each of them; the task knows what is usual.
        transfer: Whether to train in changed dynamics, too.
        progress: Whether to show how far it is.
        workers: Who step the environment of a folder; by default as many as before.
        ray: Whether they are actors of Ray, which must be running.
    """
    enable_compilation_cache()
    if isinstance(run, Result):
        subject, folder = _of_result(run), run.folder
    else:
        folder = RunFolder.open(run)
        subject = subject_of(folder, task=task, given=given, workers=workers, ray=ray)
    training = FreshTraining(subject.task.budget if budget is None else budget)
    training = training.fitting(subject.environment)  # Refused before much is done.
    title = f"Evaluating {subject.task.name}"
    with progress_bar(title, "ranking set", enabled=progress) as show:
        ranking = ranking_for(subject)
        found = evaluation.judge(
            subject,
            seeds=seeds,
            training=training,
            transfer=transfer,
            ranking=ranking,
            on_progress=show,
        )
    if folder is not None:
        folder.save_json("evaluation.json", found)
        folder.save_json("picture.json", evaluation.picture(subject, ranking))
    return found


def ranking_for(subject: Subject) -> RankingSet | None:
    """The trajectories to rank; `None` where the true reward is not known."""
    if not subject.environment.has_reward:
        return None
    return evaluation.ranking_of_demos(subject.environment, subject.demos)


def _of_result(result: Result) -> Subject:
    return Subject(
        task=result.task,
        demos=result.demos,
        seed=result.config.seed,
        test_seed=result.config.test_seed,
        problem=result.config.problem,
        policy=result.policy,
        reward=result.reward,
    )


def subject_of(
    folder: RunFolder,
    *,
    task: AnyTask | None = None,
    given: Given | None = None,
    workers: int | None = None,
    ray: bool = False,
) -> Subject:
    """What a run has learned so far, from its folder."""
    setup = reopen(folder, task=task, given=given, workers=workers, ray=ray)
    if not folder.policy_path.exists():
        raise RunError(
            f"{folder.path} holds neither a reward nor a policy yet; let the run "
            f"finish a step, or continue it with `hyperirl resume {folder.path}`."
        )
    reward, config = None, setup.config
    if folder.reward_path.exists():
        like = standing_alone(setup, setup.reward) if "reward" in config.given else None
        reward = saving.load_reward(folder.reward_path, like=like)
    like = setup.policy if "policy" in config.given else None
    return Subject(
        task=setup.task,
        demos=setup.demos,
        seed=config.seed,
        test_seed=config.test_seed,
        problem=config.problem,
        policy=saving.load_policy(folder.policy_path, like=like),
        reward=reward,
    )
