# The only commands of this repository; CI calls them too. `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast test-e2e check fix bench pins clean

# Any Python from 3.8 on: it finds the 3.12 or 3.13 that everything else runs with.
PYTHON ?= python3
# More arguments for demo, bench or pytest: make demo ARGS="--question '...'"
ARGS ?=
PYTEST = .venv/bin/python -m pytest
# A selection of tests may leave one of the two runs of `make test` with nothing to do (pytest's code 5).
EMPTY_IS_FINE = $(if $(ARGS),|| [ $$? -eq 5 ])
# An engine starts on one core: two modules of engine tests run side by side, each with its own.
WORKERS ?= 2

help: ## Lists the commands
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/  make \1|\2/p' Makefile | while IFS='|' read -r name text; do printf '%-18s %s\n' "$$name" "$$text"; done

setup: ## Makes .venv: all packages, pinned, and the virtual TPU (run by the commands below)
	@$(PYTHON) -m ci.setup.bootstrap

demo: setup ## Serves a real model on the virtual TPU and records the validated row (ARGS=)
	@.venv/bin/python -m demo $(ARGS)

test: setup ## Runs all tests (ARGS=)
	$(PYTEST) -m "not engine" -n $(WORKERS) --durations=15 $(ARGS) $(EMPTY_IS_FINE)
	$(PYTEST) -m engine -n $(WORKERS) --dist loadfile --timeout=900 --durations=15 $(ARGS) $(EMPTY_IS_FINE)

test-fast: setup ## Runs the quick unit tests (ARGS=)
	$(PYTEST) -m "not engine and not slow and not aot" -n $(WORKERS) --durations=10 $(ARGS)

test-e2e: setup ## Runs the tests that start engines (ARGS=)
	$(PYTEST) -m engine -n $(WORKERS) --dist loadfile --timeout=900 --durations=15 $(ARGS)

check: setup ## Runs every check of the repository and shows all problems at once
	@.venv/bin/python -m ci.checks

fix: setup ## Formats the code and renders the generated files
	@.venv/bin/python -m ci.checks --fix

bench: setup ## Measures tokens/s beside transformers on the same cores (ARGS=)
	@.venv/bin/python -m benchmarks.throughput $(ARGS)

pins: setup ## Resolves all versions anew and writes them into pyproject.toml
	@.venv/bin/python -m ci.setup.pins

clean: ## Removes what set-up made
	rm -rf .venv .uv .setup.lock .setup.log uv.lock
