"""Which curves a report shows, in which order."""

from hyperirl.report.charts import Chart

CURVES = (
    Chart(
        "nll_valid",
        "Held-out NLL",
        "nats for each trajectory",
        "of expert trajectories the reward was not fitted to",
        reference="floor_valid",
        reference_name="expert's floor",
    ),
    Chart(
        "gap",
        "Gap to the floor",
        "nats for each trajectory",
        "held-out NLL above the expert's own",
        log=True,
    ),
    Chart(
        "outer_loss",
        "Outer loss",
        "nats for each trajectory",
        "discounted, on the trajectories it is fitted to",
    ),
    Chart("true_return", "True return", "return", "of the policy; never used to learn"),
    Chart(
        "rank_corr",
        "Rank correlation",
        "Spearman correlation",
        "of learned and true returns; never used to learn",
    ),
    Chart(
        "inner_gap",
        "Inner gap",
        "soft return",
        "how far the policy is from the best one on the current reward",
        log=True,
    ),
    Chart(
        "snr",
        "Signal-to-noise of the hypergradient",
        "ratio",
        "from two halves of the trajectories",
        log=True,
        reference=1.0,
        reference_name="as much noise as signal,",
    ),
    Chart("damping", "Damping", "λ", "of the inverse Fisher", log=True),
    Chart(
        "step_seconds",
        "Time for each outer step",
        "seconds",
        "the first ones include compilation",
        log=True,
        zero=True,
    ),
)

DIAGNOSTICS = (
    Chart(
        "ml_irl_cosine",
        "Cosine with ML-IRL",
        "cosine",
        "between the two estimates of the hypergradient",
    ),
    Chart("residual", "Solve residual", "relative", "of the curvature solve", log=True),
    Chart(
        "effective_dimension",
        "Effective dimension",
        "directions",
        "of the Fisher that stand out from the damping",
    ),
    Chart(
        "certificate",
        "Sketch certificate",
        "relative error",
        "bound on the error of the sketched solve",
        log=True,
    ),
    Chart("solver_iterations", "Solver iterations", "iterations", "of each solve"),
    Chart("h_norm", "Norm of the hypergradient", "norm", "before clipping", log=True),
    Chart("entropy", "Entropy of the policy", "nats for each step", ""),
    Chart("policy_kl", "Policy change", "KL, nats", "in one outer step", log=True),
    Chart(
        "inner_gradient_norm",
        "Inner gradient",
        "norm",
        "of the inner loss where the inner solver stopped",
        log=True,
    ),
    Chart(
        "agent_episodes", "Agent trajectories", "trajectories", "per step", zero=True
    ),
    Chart("inner_updates", "Inner updates", "updates", "per outer step", zero=True),
    Chart("learning_rate", "Learning rate", "step size", "of the reward", log=True),
    Chart("skipped_total", "Skipped steps", "steps", "not finite, so far", zero=True),
)
