# Each target makes what it needs, once.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
NODE_INSTALLED := web/node_modules/.package-lock.json
BENCHES := $(sort $(filter-out bench/_%,$(wildcard bench/*.py)))

.DEFAULT_GOAL := help
.PHONY: help serve test test-fast soak chaos check models test-models system bench web reference screenshots wheel clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

serve: models ## build the tools and start the server
	$(BIN)/antiphon serve

# Tests that speak and listen in real time run alone, so that nothing else slows them down.
IN_REAL_TIME := tests/e2e/test_voice.py tests/e2e/test_rate_limits.py $(patsubst %,tests/browser/test_%.py,voice speech performance)
# Slow folders go first. Small files at the end let both workers finish at about the same time.
SLOW := $(patsubst %,tests/%/,e2e browser wire fault scenarios contract)
# `make check` runs tests/gates.
IN_PARALLEL := $(SLOW) $(filter-out $(SLOW) tests/gates/ tests/soak/ %__pycache__/,$(wildcard tests/*/)) src/antiphon/toolkit
PARALLEL := -n 2 --dist loadfile --no-loadscope-reorder
# Which tests have failed. The checks run pytest at the same time, and have a cache of their own.
REMEMBER := -o cache_dir=.pytest_cache/tests
AGAIN := --last-failed --last-failed-no-failures none

# The checks run in parallel with the first tests. Their output is shown in one piece when the tests are done.
# The recipe does not use $(MAKE) directly, because `make -n` would run it.
THIS_MAKE := $(MAKE)
test: system models test-models $(NODE_INSTALLED) ## run every check and every test
	@said=$$(mktemp); trap 'rm -f "$$said"; kill $$checks 2>/dev/null' EXIT; trap 'exit 130' INT TERM; \
	{ $(THIS_MAKE) --no-print-directory check && npm --prefix web run --silent test; } >"$$said" 2>&1 & checks=$$!; \
	$(BIN)/pytest -q $(REMEMBER) $(PARALLEL) $(IN_PARALLEL) $(addprefix --ignore=,$(IN_REAL_TIME)); tested=$$?; \
	wait $$checks; checked=$$?; cat "$$said"; \
	if [ $$tested -eq 1 ]; then \
	  echo "The tests that have failed run again, alone. One that passes now needs more time on a busy machine than it allows."; \
	  $(BIN)/pytest -q $(REMEMBER) $(AGAIN) $(IN_PARALLEL); tested=$$?; \
	fi; \
	[ $$checked -eq 0 ] || echo "A check has failed: see above."; \
	[ $$tested -eq 0 ] && [ $$checked -eq 0 ]
	$(BIN)/pytest -q $(REMEMBER) $(IN_REAL_TIME) || $(BIN)/pytest -q $(REMEMBER) $(AGAIN) $(IN_REAL_TIME)

# Tests that use the real speech engines, which take as long as all others together.
ENGINES := $(patsubst %,tests/contract/test_%.py,recognizer synthesizer) tests/unit/compose/test_voice.py \
	$(patsubst %,tests/unit/speech/test_%.py,moonshine hibari local_voices) tests/unit/models/cascade/test_real_voice.py

test-fast: models test-models ## run the unit and contract tests, without the real speech engines
	$(BIN)/pytest -q $(PARALLEL) tests/contract tests/unit src/antiphon/toolkit $(addprefix --ignore=,$(ENGINES))

# Their file names do not start with test_, so no other target runs them.
soak: system models test-models ## run the tests that take too long for every day
	@$(BIN)/antiphon models pull kokoro
	$(BIN)/pytest -q tests/soak/*.py

SEED ?= 1
CONVERSATIONS ?= 200
chaos: $(INSTALLED) ## run conversations with random faults (SEED=1 CONVERSATIONS=200)
	$(BIN)/python -m tests.chaos --seed $(SEED) --conversations $(CONVERSATIONS)

check: $(INSTALLED) $(NODE_INSTALLED) ## check style, types, import rules and file sizes, and that the page is built
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy src tests examples conftest.py $(if $(BENCHES),bench)
	$(BIN)/lint-imports
	cd web && npm run --silent typecheck
	$(BIN)/pytest -q tests/gates

models: $(INSTALLED) ## download the model files of the voice and of the offline assistant
	@$(BIN)/antiphon models pull

# Only the tests and benches need it, unless `speech.tts = "piper"` is set.
test-models: $(INSTALLED)
	@$(BIN)/antiphon models pull joe

system: ## install the programs that the tests run (flite, espeak-ng, chromium, Node.js, Postgres)
	@.ci/packages

bench: system models test-models ## measure every figure in the README
	@set -e; for program in $(BENCHES); do echo "$$program"; $(BIN)/python $$program; done

web: $(NODE_INSTALLED) ## check, test and build the page
	cd web && npm run --silent typecheck && npm run --silent test && npm run --silent build

reference: $(INSTALLED) ## write the generated files: docs/reference and the page's protocol types
	$(BIN)/python -m antiphon.server.reference

screenshots: system $(INSTALLED) ## make the screenshots in docs/images
	$(BIN)/python -m tests.browser.screenshots

wheel: $(INSTALLED) ## build the wheel into dist/
	$(BIN)/python -m hatchling build -t wheel

clean: ## remove everything that was made, including the virtual environment
	rm -rf $(VENV) web/node_modules bench/.venv-* bench/results .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist tool_registry.json
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Antiphon needs Python 3.11 or newer. Choose one with: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "This Python has no venv module. On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@echo "Installing Antiphon and its tools into $(VENV). This takes about a minute, once."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev,caldav,gemini,kb,local,mcp,openai,otel,pdf,postgres,realtime,recording,search,sim,tls,wake]'
	@touch $@

$(NODE_INSTALLED): web/package-lock.json
	@command -v npm >/dev/null || { \
	  echo "Building the page needs Node.js 20.19 or newer with npm, and npm was not found. The server runs without them."; exit 1; }
	cd web && npm ci
	@touch $@
