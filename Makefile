# Each target makes what it needs. The second time it finds it made.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
NODE_INSTALLED := web/node_modules/.package-lock.json
BENCHES := $(sort $(filter-out bench/_%,$(wildcard bench/*.py)))

.DEFAULT_GOAL := help
.PHONY: help serve test test-fast soak check models system bench web reference screenshots clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

serve: models ## build the tools and serve them
	$(BIN)/antiphon serve

# What hears and speaks in real time runs by itself, so that nothing else takes its time away.
IN_REAL_TIME := tests/e2e/test_voice.py $(patsubst %,tests/browser/test_%.py,voice speech performance)
# These go first: the small files that are left for the end let both workers finish at about the same time.
SLOW := $(patsubst %,tests/%/,e2e browser wire fault contract)
# The gates are among the checks.
IN_PARALLEL := $(SLOW) $(filter-out $(SLOW) tests/gates/ tests/soak/ %__pycache__/,$(wildcard tests/*/)) src/antiphon/toolkit
PARALLEL := -n 2 --dist loadfile --no-loadscope-reorder

# The checks run beside the first tests. What they say is shown when those are done, in one piece.
# The name is not $(MAKE) itself: recipes with that are run even by `make -n`.
THIS_MAKE := $(MAKE)
test: system models $(NODE_INSTALLED) ## run every check and every test
	@said=$$(mktemp); trap 'rm -f "$$said"; kill $$checks 2>/dev/null' EXIT; trap 'exit 130' INT TERM; \
	{ $(THIS_MAKE) --no-print-directory check && npm --prefix web run --silent test; } >"$$said" 2>&1 & checks=$$!; \
	$(BIN)/pytest -q $(PARALLEL) $(IN_PARALLEL) $(addprefix --ignore=,$(IN_REAL_TIME)); tested=$$?; \
	wait $$checks; checked=$$?; cat "$$said"; \
	[ $$checked -eq 0 ] || echo "A check has failed: see above."; \
	[ $$tested -eq 0 ] && [ $$checked -eq 0 ]
	$(BIN)/pytest -q $(IN_REAL_TIME)

# Without those that speak and listen with the real engines, which take as long as all others together.
ENGINES := $(patsubst %,tests/contract/test_%.py,recognizer synthesizer) tests/unit/compose/test_voice.py \
	$(patsubst %,tests/unit/speech/test_%.py,moonshine piper piper_voices) tests/unit/models/cascade/test_real_voice.py

test-fast: models ## run the unit and contract tests, for the loop of editing and testing
	$(BIN)/pytest -q $(PARALLEL) tests/contract tests/unit src/antiphon/toolkit $(addprefix --ignore=,$(ENGINES))

# Not named as tests are, so that only this finds them.
soak: system models ## run what takes too long for every day
	$(BIN)/pytest -q tests/soak/*.py

check: $(INSTALLED) $(NODE_INSTALLED) ## style, types, import rules, file sizes, and whether the page is built
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy src tests conftest.py $(if $(BENCHES),bench)
	$(BIN)/lint-imports
	cd web && npm run --silent typecheck
	$(BIN)/pytest -q tests/gates

models: $(INSTALLED) ## pull the model files of the voice
	@$(BIN)/antiphon models pull

system: ## install the programs that the tests run (flite, espeak-ng, chromium, Node.js)
	@.ci/packages

bench: system models ## measure every figure that the README claims
	@set -e; for program in $(BENCHES); do echo "$$program"; $(BIN)/python $$program; done

web: $(NODE_INSTALLED) ## check, test and build the page
	cd web && npm run --silent typecheck && npm run --silent test && npm run --silent build

reference: $(INSTALLED) ## write what is generated from the code: docs/reference and the page's types of the wire
	$(BIN)/python -m antiphon.server.reference

screenshots: system $(INSTALLED) ## make the pictures of the page in docs/images
	$(BIN)/python -m tests.browser.screenshots

clean: ## remove what was made, the virtual environment too
	rm -rf $(VENV) web/node_modules bench/.venv-peers bench/results .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist tool_registry.json
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Antiphon needs Python 3.11 or newer. Name one: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "This Python has no venv module. On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@echo "Installing Antiphon and its tools into $(VENV). This takes about a minute, once."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev,local]'
	@touch $@

$(NODE_INSTALLED): web/package-lock.json
	@command -v npm >/dev/null || { \
	  echo "The page is built with Node.js 20.19 or newer, and npm is not here. To run the server, neither is needed."; exit 1; }
	cd web && npm ci
	@touch $@
