# One place for every command. `make` alone lists them; each makes the environment first, once.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PORTAL := $(BIN)/python -m monarch_portal.embedded

# The environment is made again when what it is made of has changed.
INSTALLED := $(VENV)/.installed-$(shell { cat requirements.lock; sed '/^\[tool\.ruff\]/,$$d' pyproject.toml; } | sha256sum | cut -c1-16)
BROWSER_CODE := jobs/static/jobs/vendor/codemirror/codemirror.js

# Like production, so that Django's own checks see what users of a real server get.
AS_PRODUCTION := DATABASE_URL=postgresql://portal:none@127.0.0.1:1/portal \
	REDIS_URL=redis://127.0.0.1:1 MPORTAL_URL=https://portal.example.org \
	MPORTAL_DATABASE_CONNECTIONS=0 SECRET_KEY=only-for-the-checks-0123456789-abcdefghijklmnopqrstuvwxyz

TORCH_VERSION := 2.13.0+cpu
TORCH := .cache/torch-$(TORCH_VERSION)-sympy

.DEFAULT_GOAL := help
# Tests that need neither root nor a browser, and break nothing.
ANYWHERE := not root and not browser and not faults and not cluster and not tensors
FOLDERS := tests/acceptance tests/architecture tests/integration tests/unit
# Two workers, each a file at a time, in the order of the folders: by default xdist leaves files of one
# test for the end, and these are the longest tests.
TWO := -n 2 --dist loadfile --no-loadscope-reorder
# A slice of an expensive suite (see CONTRIBUTING.md): make faults SLICE=3.
SLICED = $(if $(SLICE),--slice=$(SLICE))

.PHONY: help setup run stop demo status env test test-all slow lint types format docs faults log-faults sky-faults browsers tensors cluster-test gpu-test cluster-shell screenshots features coverage bench lock reset clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {gsub(/\$$\$$/, "$$", $$2); printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(INSTALLED) $(BROWSER_CODE) ## Make the environment in .venv (minutes at first, then at once)

$(BROWSER_CODE): deploy/install-browser-code $(wildcard deploy/browser-code/*)
	@deploy/install-browser-code jobs/static/jobs/vendor

$(INSTALLED):
	@PYTHON="$(PYTHON)" deploy/make-environment "$(VENV)"
	@rm -f $(VENV)/.installed-* && touch $@

run: setup ## Run the portal in the foreground; prints a sign-in link
	@$(PORTAL) run

stop: setup ## End the portal; jobs go on
	@$(PORTAL) stop

status: setup ## Show the portal's processes and their memory
	@$(PORTAL) status

env: setup ## Print what a shell needs to use this portal: eval "$$(make -s env)"
	@$(PORTAL) env

# deploy/demo ends with the job's own code; make turns whatever is not 0 into 2.
demo: setup ## Start the portal if none runs, and run a Monarch job on it
	@deploy/demo "$(BIN)"

test: setup ## Run the unit and integration tests, and a job on a whole portal (ARGS="-k word")
	@$(BIN)/python -m pytest -m "$(ANYWHERE) and (smoke or not slow)" $(FOLDERS) \
		$(TWO) --durations=5 --durations-min=5 $(ARGS)

test-all: setup ## Run every suite whole, with one summary; as root (an hour to an hour and a half)
	@$(BIN)/python -m tests.suites.run all

slow: setup ## Run the tests that `make test` leaves out: whole portals, runners, real workers
	@$(BIN)/python -m pytest -m "$(ANYWHERE) and slow and not smoke" $(FOLDERS) \
		$(TWO) $(SLICED) $(ARGS)

# Two at a time: most of it is waiting for a portal to recover. Generated requests are part of
# `make test` as well; here there are more of them.
faults: setup ## Kill, stop, cut off and fill up real processes (ARGS="-k word"; FULL=1: every pair)
	@FULL="$(FULL)" HOSTILE_EXAMPLES=25 $(BIN)/python -m pytest $(TWO) \
		tests/faults tests/integration/hostile/test_generated_requests.py \
		--ignore=tests/faults/sky --ignore=tests/faults/test_log_faults.py $(SLICED) $(ARGS)

# Alone: it prints as fast as it can, and takes the processor from tests of what is done in time.
log-faults: setup ## Break things in the middle of a fast log, and compare every byte (ARGS="-k word")
	@$(BIN)/python -m pytest tests/faults/test_log_faults.py $(SLICED) $(ARGS)

sky-faults: setup ## The same on SkyPilot's machines, over a stand-in for its server (FULL=1: all)
	@FULL="$(FULL)" $(BIN)/python -m pytest $(TWO) tests/faults/sky \
		tests/integration/skypilot_job/test_skypilot_job_ends.py $(SLICED) $(ARGS)

browsers: setup ## Drive every page with a real Chromium on a real portal (ARGS="-k word")
	@deploy/install-browser
	@$(BIN)/python -m pytest -m browser $(TWO) tests/browser $(SLICED) $(ARGS)

tensors: setup $(TORCH) ## Run the tests that need torch, which is installed once (190 MB to load, 760 MB)
	@MPORTAL_TEST_TORCH=$(abspath $(TORCH)) $(BIN)/python -m pytest -m tensors \
		tests/integration/runner tests/integration/context $(ARGS)

# PyTorch serves its CPU builds from an index of its own.
$(TORCH): | $(INSTALLED)
	@echo "Installing torch for make tensors (once) ..."
	@rm -rf $@.new
	@$(BIN)/python -m pip install --quiet --no-deps --target $@.new torch==$(TORCH_VERSION) \
		sympy==1.14.0 mpmath==1.3.0 || { echo "If pip" \
		"finds no torch for CPUs: PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu make tensors"; exit 1; }
	@mv $@.new $@

cluster-test: setup ## Launch on a real Slurm cluster with a real SkyPilot, as root (ARGS="-k word"; FULL=1)
	@deploy/install-rig "$(VENV)"
	@FULL="$(FULL)" $(BIN)/python -m tests.cluster.rig -- \
		$(abspath $(BIN))/python -m pytest -m cluster tests/cluster $(SLICED) $(ARGS)

gpu-test: setup ## Run jobs on this machine's NVIDIA GPU; needs torch with CUDA (ARGS="-k word")
	@$(BIN)/python -m pytest tests/gpu $(ARGS)

cluster-shell: setup ## A shell beside that cluster: sky, sinfo, squeue, scancel
	@deploy/install-rig "$(VENV)"
	@$(BIN)/python -m tests.cluster.rig -- $(abspath $(BIN))/python -m tests.cluster.rig.shell

screenshots: setup ## Take the pictures of docs/images again
	@deploy/install-browser
	@KEEP_PICTURES=1 $(BIN)/python -m pytest -q -m browser tests/browser/test_pictures.py

lint: setup ## Check style, layers, templates, settings and migrations
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/python deploy/djlint templates --check --lint --quiet
	$(AS_PRODUCTION) $(BIN)/python manage.py check --deploy --fail-level WARNING
	$(AS_PRODUCTION) $(BIN)/python -W ignore manage.py makemigrations --check --dry-run

types: setup ## Check types
	$(BIN)/mypy

format: setup ## Format the code
	$(BIN)/ruff check --fix-only --quiet . && $(BIN)/ruff format .

docs: ## Build the documentation as a site with search, in .cache/docs/site
	@PYTHON="$(PYTHON)" deploy/make-docs

features: setup ## Write docs/reference/features.md from the last `make test-all`
	@$(BIN)/python -m tests.feature_table

coverage: setup ## Run the unit and integration tests and hold the coverage above its floor
	@rm -rf .results/coverage && mkdir -p .results/coverage
	@$(BIN)/python -m coverage run -m pytest -q -m "not root and not browser" tests/unit tests/integration $(ARGS)
	@$(BIN)/python -m coverage combine -q .results/coverage && $(BIN)/python -m coverage report

bench: setup ## Measure: make bench NAME=submit_latency
	@test -n "$(NAME)" || { echo "Which one? make bench NAME=..., see bench/README.md"; exit 2; }
	@$(BIN)/python -m bench.$(NAME) $(ARGS)

lock: ## Write requirements.lock after pyproject.toml (needs uv; ARGS=--upgrade)
	uv pip compile pyproject.toml --all-extras --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-header --no-annotate $(ARGS) -o requirements.lock

reset: stop ## Remove all data of this checkout's portal; asks first
	@deploy/reset "$(BIN)"

clean: ## Remove the environment and caches; data stays
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .results *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
