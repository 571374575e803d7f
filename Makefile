# Two commands do everything: `make demo` and `make test`. Both set up first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test check docs clean

setup: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	@echo "Setting up .venv (about a minute the first time) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || (echo "hyperirl needs Python 3.11 or newer; choose one with make PYTHON=python3.11" && exit 1)
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --constraint constraints.txt --editable '.[dev]'
	@touch $@
	@echo "Set up."

demo: setup
	@$(BIN)/hyperirl demos collect --env cartpole --episodes 20 --out runs/demo-cartpole.npz --overwrite
	@$(BIN)/hyperirl demos inspect runs/demo-cartpole.npz

check: setup
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/basedpyright --level error

test: check
	@$(BIN)/python -m pytest -q

clean:
	rm -rf .venv .cache runs
