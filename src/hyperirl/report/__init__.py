"""A run, or several beside each other, as one HTML file that needs nothing else.

It is made from run folders only, so it can be drawn again without running anything.
Everything in a folder but the config is optional: what is not there is not shown.

- `metrics.jsonl`: a curve for each number, over the `step`.
- `evaluation.json`: each metric is a number or `{"mean", "low", "high", "n"}`;
  `transfer` maps the name of a change to `{"env_return", "true_reward_return"}`.
- `picture.json`: the learned reward. Either values over two numbers,

      {"kind": "heatmaps",
       "x": {"name": "angle", "values": [...]},
       "y": {"name": "angular velocity", "values": [...]},
       "panels": [{"title": "learned, push left", "values": [[...], ...]}, ...]}

  where `values[i][j]` belongs to `y["values"][i]` and `x["values"][j]` (a panel may
  name a `group`: those of a group share one color scale), or matrices,

      {"kind": "matrices",
       "panels": [{"title": "learned Q", "rows": [...], "columns": [...],
                   "values": [[...], ...]}, ...]}

  and with either, one point for each trajectory:

      "scatter": {"x_name": "true return", "y_name": "learned return",
                  "x": [...], "y": [...], "groups": [...]}
"""

from hyperirl.report.page import write_report as write_report
