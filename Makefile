# `make demo` and `make test` are all that is needed on a fresh machine with Python 3.10+ and a C compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH ?= torch==2.14.1 torchvision==0.29.1

.PHONY: help demo test lint truth bench assets clean

help: ## this list
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:[^#]*## /\t/' | expand -t 12

demo: $(VENV)/.demo ## sets up, then predicts a ResNet-50 training step on an RTX 3060 that isn't there
	$(BIN)/vramscope predict --gpu rtx-3060 -o demo.vram examples/resnet50_step.py --batch-size 90

test: $(VENV)/.test ## sets up, then checks style and types and runs every test
	$(BIN)/ruff check src tests bench examples
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -n auto

truth: $(VENV)/.test ## published measurements against predictions (needs ../shared/truth)
	$(BIN)/python bench/truth.py
	$(BIN)/python bench/brackets.py

bench: $(VENV)/.test ## how fast, as ratios in one run
	$(BIN)/python bench/speed.py
	$(BIN)/python bench/recorder.py
	$(BIN)/python bench/million.py
	$(BIN)/python bench/plan.py

assets: ## the page's libraries, as assets/package-lock.json has them, into the package (needs npm)
	cd assets && npm ci --ignore-scripts --no-audit --no-fund && npm run --silent build

clean: ## removes the virtual environment
	rm -rf $(VENV)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "Python 3.10 or later is needed; try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV) || { echo "venv failed; on Debian: apt install python3-venv"; exit 1; }

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check $(TORCH) -e '.[models]'
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check $(TORCH) -e '.[models,quant,programs,cluster,plots,flowers,dev]'
	@touch $@ $(VENV)/.demo
