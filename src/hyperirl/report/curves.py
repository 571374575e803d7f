"""Which curves a report shows, in which order, and what they are compared with."""

from hyperirl.metrics import METRICS
from hyperirl.report.charts import Chart

CURVES = (
    Chart(METRICS["nll_valid"], reference=METRICS["floor_valid"]),
    Chart(METRICS["gap"]),
    Chart(METRICS["outer_loss"]),
    Chart(METRICS["true_return"]),
    Chart(METRICS["rank_corr"]),
    Chart(METRICS["inner_gap"]),
    Chart(METRICS["snr"], reference=1.0, reference_name="as much noise as signal,"),
    Chart(METRICS["damping"]),
    Chart(METRICS["step_seconds"], zero=True),
)

DIAGNOSTICS = (
    Chart(METRICS["ml_irl_cosine"]),
    Chart(METRICS["soft_bellman_cosine"]),
    Chart(METRICS["residual"]),
    Chart(METRICS["effective_dimension"]),
    Chart(METRICS["certificate"]),
    Chart(METRICS["solver_iterations"]),
    Chart(METRICS["h_norm"]),
    Chart(METRICS["entropy"]),
    Chart(METRICS["policy_kl"]),
    Chart(METRICS["inner_gradient_norm"]),
    Chart(METRICS["agent_episodes"], zero=True),
    Chart(METRICS["inner_updates"], zero=True),
    Chart(METRICS["learning_rate"]),
    Chart(METRICS["radius"]),
    Chart(METRICS["skipped_total"], zero=True, if_any=True),
)
