# Two commands do everything: `make demo` and `make test`. Both set up first.
PYTHON ?= python3
BIN := .venv/bin
# What a start imports: compiled once here, and not by every start where Python may not
# write beside its sources.
PACKAGES := .venv/lib/python*/site-packages
IMPORTED := jax jaxlib equinox numpy optax rich tyro jaxtyping gymnasium opt_einsum \
  docstring_parser absl

.PHONY: setup demo test check docs clean

setup: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	@echo "Setting up .venv (about a minute the first time) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || (echo "hyperirl needs Python 3.11 or newer; choose one with make PYTHON=python3.11" && exit 1)
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --no-compile --constraint constraints.txt \
	  --editable '.[dev]'
	@$(BIN)/python -m compileall -q -j 0 src $(addprefix $(PACKAGES)/,$(IMPORTED))
	@touch $@
	@echo "Set up."

demo: RUN := runs/demo-$(shell date +%Y%m%d-%H%M%S)
demo: setup
	@$(BIN)/hyperirl learn --env cartpole --out $(RUN)
	@$(BIN)/hyperirl evaluate $(RUN) --seeds 2 --budget 1000000 --no-transfer
	@$(BIN)/hyperirl report $(RUN)

check: setup
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/basedpyright --level error

test: check docs
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder

docs: setup
	@$(BIN)/sphinx-build -qW docs docs/_build
	@echo "Open docs/_build/index.html"

clean:
	rm -rf .venv .cache docs/_build
