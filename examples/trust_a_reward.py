"""Look at a learned reward, and decide whether to trust it.

`python examples/trust_a_reward.py` learns a reward for CartPole, questions it, and
writes a report with pictures. It takes about two minutes.
"""

import pathlib

import hyperirl as hi
from hyperirl.evaluation import sensitivity
from hyperirl.report import write_report
from hyperirl.verdict import judgement_of


def question(result: hi.Result, **effort) -> dict:
    """Five questions, in the order in which they matter."""
    # 1. Did learning go well? Says what went wrong; an empty list is good news.
    print("warnings:", result.warnings or "none")

    # 2. What is it worth to somebody who has only the reward? Policies are trained
    #    from scratch on it, and judged on episodes that learning has not seen.
    found = hi.evaluate(result, **effort)
    judgement = judgement_of(result.metrics, found)
    print(judgement.sentence)

    # 3. Why might that be wrong?
    for sentence in judgement.distrust:
        print("but:", sentence)

    # 4. Does it say more than a reward that knows nothing?
    for name in ("rank_corr", "rank_corr_constant", "rank_corr_untrained"):
        print(f"{name:20} {mean(found[name])}")

    # 5. Does it look at what a person would look at?
    inputs = sensitivity(result.task, result.reward, result.demos.trajectories)
    for name, share in zip(inputs["names"], inputs["learned"], strict=True):
        print(f"{name:26} {share:.4f}")
    return found


def mean(number) -> float | None:
    """Of a number with an interval, or the number itself."""
    return number["mean"] if isinstance(number, dict) else number


def main(out: str = "runs/trust", **options) -> dict:
    """Learns, questions, reports."""
    result = hi.learn("cartpole", out=out, **options)
    found = question(result)
    page = pathlib.Path(out) / "report.html"
    write_report([pathlib.Path(out)], page)
    print(f"Open {page}")
    return found


if __name__ == "__main__":
    main()
