"""The paper's evaluation, one module an experiment, and the runner of their cells.

An experiment is a module with

- `TITLE`, and `ALONE`: whether its cells must not share the machine, for they are
  timed;
- `cells(budget, seeds, done)`: the cells it needs. It is asked again with their results
  (by id) until it wants no more, so later cells may depend on earlier ones;
- `summarize(cells, done)`: the `Outcome`, from the results there are.
"""
