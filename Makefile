# Every target does its own set-up (scripts/setup.sh), so on a fresh machine `make demo` and `make test` just work.

.DEFAULT_GOAL := help
.PHONY: help setup demo further test test-train conformance check format docs lock hooks clean distclean

# Harbor and litellm phone home unless told not to.
export HARBOR_TELEMETRY := 0
export LITELLM_LOCAL_MODEL_COST_MAP := true
# A virtual environment that happens to be active is not ours.
unexport VIRTUAL_ENV

BIN := .venv/bin
SOURCES := src tests scripts benchmarks recipes
# Worker processes of the test run. Sandboxes are processes too, so two per machine is a good start.
JOBS ?= 2

help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: ## prepare .venv with the pinned, hash-checked packages (no root needed)
	@scripts/setup.sh

demo: setup ## compile the example skills and real third-party skills into out/demo
	@scripts/demo.sh

further: setup ## compile three further example skills into out/further, at level strict (minutes)
	@$(BIN)/skill2env compile examples/further/skills --config configs/further.toml --allow-degraded --out out/further

test: setup ## run every test that this machine can run
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

test-train: ## run the tests that need torch, in an environment of their own (.venv-train, 5 GB)
	@scripts/train_venv.sh
	@.venv-train/bin/python -m pytest -n $(JOBS) --dist worksteal tests/train tests/rollout tests/judge $(ARGS)

conformance: setup ## compare the namespace sandbox with docker and podman: by case, by Dockerfile and by task
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal tests/sandbox/conformance tests/sandbox/differential tests/sandbox/test_engine.py $(ARGS)
	@$(BIN)/python benchmarks/conformance.py --workers $(JOBS)
	@$(BIN)/python benchmarks/harbor_run.py --workers $(JOBS)

check: setup ## formatting, lint, types, import direction, generated docs, links
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/basedpyright --warnings
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python scripts/docs.py --check

format: setup ## format the code and mend what ruff can mend
	@$(BIN)/ruff format $(SOURCES)
	@$(BIN)/ruff check --fix $(SOURCES)

docs: setup ## regenerate the generated parts of docs/ and check every link
	@$(BIN)/python scripts/docs.py

lock: setup ## resolve requirements/*.txt anew (UPGRADE=1 moves to newer versions)
	@UV="$$(scripts/setup.sh --print-uv)" UPGRADE="$(UPGRADE)" scripts/lock.sh

hooks: setup ## run `make check`'s quick parts before each commit
	@$(BIN)/prek install

clean: ## remove what the targets made in this checkout, except .venv
	rm -rf out dist build .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## also remove .venv and .tools; the cache outside is removed by `skill2env cache clear`
	rm -rf .venv .venv-train .tools
