"""A run, or several beside each other, as one HTML file that needs nothing else.

It is made from run folders only, so it can be drawn again without running anything.
Everything in a folder but the config is optional: what is not there is not shown.

- `metrics.jsonl`: a curve for each number, over the `step`.
- `evaluation.json`: each metric is a number or `{"mean", "low", "high", "n"}`;
  `transfer` maps the name of a change to `{"env_return", "true_reward_return"}`.
- `picture.json`: the learned reward. Either values over two inputs,

      {"kind": "heatmaps",
       "x": {"name": "angle", "values": [...]},
       "y": {"name": "angular velocity", "values": [...]},
       "panels": [{"title": "learned, push left", "group": "learned",
                   "values": [[...], ...]}, ...],
       "seen": {"x": [...], "y": [...]}, "inside": ["0110...", ...]}

  where `values[i][j]` belongs to `y["values"][i]` and `x["values"][j]`, `seen` is where
  demonstrations were, and `inside[i][j]` is `1` near them; or matrices,

      {"kind": "matrices",
       "panels": [{"title": "learned Q", "group": "Q", "rows": [...], "columns": [...],
                   "values": [[...], ...], "seen": ["10...", ...]}, ...]}

  and with either, what `hyperirl.evaluation.picture` says: the reward `along` an
  episode, its `sensitivity`, `visits` of the policy, and one point for each trajectory:

      "scatter": {"x_name": "true return", "y_name": "learned return",
                  "x": [...], "y": [...], "groups": [...]}

- `film.gif` or `film.mp4`, of at most 4 MB: an episode, as `hyperirl play` writes it.
"""

from hyperirl.report.page import render as render
from hyperirl.report.page import write_report as write_report
from hyperirl.report.serving import ReportServer as ReportServer
