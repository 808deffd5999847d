# Two commands for a fresh machine with Python 3.11 or later: `make demo` and `make test`.

PYTHON ?= python3
CONTAINER ?= docker
BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt

# What an installation is built from; after a change to it, it is built anew.
BUILT_FROM := pyproject.toml constraints.txt

.PHONY: demo test test-integrations check docs format bench bench-end-to-end mutants fuzz chaos reproduce data-folder dist test-lowest container clean

demo: .venv/installed
	@echo '$$ ulr classify examples/support_messages.csv --text-column message --labels examples/support_labels.yaml'
	@$(BIN)/ulr classify examples/support_messages.csv --text-column message --labels examples/support_labels.yaml
	@echo
	@echo '$$ ulr evaluate examples/news_blurbs.csv -t headline -t summary --labels examples/news_labels.txt --truth section'
	@$(BIN)/ulr evaluate examples/news_blurbs.csv -t headline -t summary --labels examples/news_labels.txt --truth section

test: check
	$(BIN)/pytest -n 2 --dist loadfile

check: .venv/developing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/zizmor --offline --quiet --no-progress .github

# Every fault of a list must make a test of the refinement fail: some fifteen minutes on two cores.
mutants: .venv/developing
	$(BIN)/python tools/mutants.py

# With the tools themselves, some of which are large and one of which needs an older NumPy: in an
# environment of their own. Without them, `make test` skips what needs them.
test-integrations: .venv/integrations/installed
	.venv/integrations/bin/python -m pytest tests/integrations

# Generated bad inputs, half an hour of a core; kills at calls that write and full disks, some ten minutes.
# A stopped run goes on; failing cases stay in .fuzz and .chaos.
fuzz: .venv/developing
	$(BIN)/python tools/fuzz.py --count 10000

chaos: .venv/developing
	$(BIN)/python tools/chaos.py --kills 200

# The documentation in build/site; a warning, a broken link, or a page that needs the network fails.
docs: .venv/documenting
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --nitpicky --quiet --fresh-env --write-all docs build/site

# A wheel and a source archive in dist/; both are installed and tried outside this folder: some minutes.
dist: .venv/developing
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/pytest -n 0 -m archives

# The lowest versions that pyproject.toml states, in an environment of their own: some minutes.
test-lowest: .venv/developing
	$(BIN)/python tools/lowest.py

# The image of `ulr serve`; needs Docker or, with CONTAINER=podman, Podman.
container:
	$(CONTAINER) build --tag ulr .

format: .venv/developing
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Some ten minutes on two cores. With ULR_DATA set to a folder of datasets, the encoder too.
bench: .venv/measuring
	$(BIN)/python -m benchmarks.refine --write docs/performance.md
	@if [ -n "$$ULR_DATA" ]; then $(BIN)/python -m benchmarks.encode --write docs/performance.md; \
	else echo 'The encoder is not measured: set ULR_DATA to a folder of datasets.'; fi

# From file to file: some four minutes for a million rows, and as long for the scaling.
bench-end-to-end: .venv/developing
	$(BIN)/python -m benchmarks.end_to_end --write docs/performance.md
	@if [ -n "$$ULR_DATA" ]; then $(BIN)/python -m benchmarks.end_to_end --data "$$ULR_DATA" \
	--write docs/performance.md; fi
	$(BIN)/python -m benchmarks.end_to_end --scaling --write docs/performance.md

# The paper's experiments as far as they need no training, with the embedded encoder: ten minutes on
# two cores. What is finished is kept in reproduced/, so a stopped run goes on where it was.
reproduce: data-folder .venv/reproducing
	$(BIN)/python -m reproduction all --encoder static --out reproduced

data-folder:
	@[ -n "$$ULR_DATA" ] || { echo 'Name the folder of the datasets: make reproduce ULR_DATA=DIR (docs/reproduce.md says what lies in it).'; exit 1; }

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

.venv/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'Python 3.11 or later is needed; name one with: make PYTHON=python3.12'; exit 1; }
	$(PYTHON) -m venv .venv

.venv/installed: .venv/pyvenv.cfg $(BUILT_FROM)
	$(INSTALL) --editable '.[strong]'
	@touch $@

.venv/developing: .venv/pyvenv.cfg $(BUILT_FROM)
	$(INSTALL) torch
	$(INSTALL) --editable '.[dev]'
	@touch $@ .venv/installed

.venv/integrations/installed: .venv/pyvenv.cfg $(BUILT_FROM)
	$(BIN)/python -m venv .venv/integrations
	.venv/integrations/$(INSTALL:.venv/%=%) --editable '.[integrations]'
	@touch $@

.venv/measuring: .venv/developing
	$(INSTALL) --editable '.[bench]'
	@touch $@

.venv/documenting: .venv/developing
	$(INSTALL) --editable '.[docs]'
	@touch $@

.venv/reproducing: .venv/pyvenv.cfg $(BUILT_FROM)
	$(INSTALL) --editable '.[strong,glove,plots]'
	@touch $@ .venv/installed
