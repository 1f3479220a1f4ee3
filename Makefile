# Everything needs only Python 3.11 or newer, pip and make.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DEMO   := demo
OUT    ?= results
# Tests share the processors; JOBS=0 runs them in one process, for a debugger.
JOBS   ?= auto
PYTEST := pytest -n $(JOBS) --dist worksteal
ROOM   ?= $(filter-out __pycache__,$(patsubst tests/%/,%,$(wildcard tests/*/)))

.DELETE_ON_ERROR:
.PHONY: help install demo quick test test-cluster test-handover test-peers browser coverage lint types check bench claims paper study fuzz mutants picture tables reference docs samples dist clean

help:  ## show this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | sort

install: $(VENV)/installed  ## make a virtual environment with nnkgraph and its tools

# What pictures and clusters need is enough for the README; tests need more.
$(VENV)/plot: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "nnkgraph needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	@echo "installing nnkgraph and what pictures and clusters need into $(VENV): this takes about a minute"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[cluster,plot]'
	@touch $@

$(VENV)/installed: $(VENV)/plot
	@echo "installing what tests and checks need (1.2 GB): this takes a few minutes"
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: $(DEMO)/two_moons.png $(DEMO)/swiss_roll.npz $(DEMO)/digits.graphml  ## build graphs from sample_data/ and draw one
	@echo; $(BIN)/nnkgraph info $(DEMO)/digits.graphml
	@echo; echo "Look at $(DEMO)/two_moons.png"

$(DEMO)/swiss_roll.npz: sample_data/swiss_roll.npy $(VENV)/plot
	@mkdir -p $(@D)
	$(BIN)/nnkgraph build $< -o $@

$(DEMO)/digits.graphml: sample_data/digits.h5 $(VENV)/plot
	@mkdir -p $(@D)
	$(BIN)/nnkgraph build $<::features -o $@

$(DEMO)/moons_nnk.npz: sample_data/two_moons.csv $(VENV)/plot
	@mkdir -p $(@D)
	$(BIN)/nnkgraph build $< --id-column id -k 15 -o $@

$(DEMO)/moons_knn.npz: sample_data/two_moons.csv $(VENV)/plot
	@mkdir -p $(@D)
	$(BIN)/nnkgraph build $< --id-column id -k 15 --method knn -o $@

$(DEMO)/two_moons.png: sample_data/two_moons.csv $(DEMO)/moons_knn.npz $(DEMO)/moons_nnk.npz
	$(BIN)/nnkgraph plot $(DEMO)/moons_knn.npz --beside $(DEMO)/moons_nnk.npz --coords $< --id-column id -o $@

$(DEMO)/sparsity.png: sample_data/swiss_roll.npy $(VENV)/plot
	@mkdir -p $(@D)
	$(BIN)/nnkgraph compare $< -k 10:50:5 -o $@

$(DEMO)/digits_map.png: sample_data/digits.h5 $(VENV)/plot
	@mkdir -p $(@D)
	$(BIN)/nnkgraph build $<::features -o $(DEMO)/digits.npz
	$(BIN)/nnkgraph embed $(DEMO)/digits.npz -p 3 -o $(DEMO)/digits_map.npy
	$(BIN)/nnkgraph plot $(DEMO)/digits.npz --coords $(DEMO)/digits_map.npy --axes 1,2 --labels $<::labels -o $@

$(DEMO)/speed.png: docs/search.md $(VENV)/plot
	@mkdir -p $(@D)
	$(BIN)/python -m bench.neighbors $@

picture: $(DEMO)/two_moons.png $(DEMO)/sparsity.png $(DEMO)/digits_map.png $(DEMO)/speed.png  ## draw the README's pictures again
	cp $^ docs/

tables: $(VENV)/installed  ## print the tables of methods, kernels and searches in docs/choices.md
	@$(BIN)/python docs/reference.py methods kernels search

reference: $(VENV)/installed  ## write docs/reference.md, docs/api.md and docs/claims.md again
	$(BIN)/python docs/reference.py > docs/reference.md
	$(BIN)/python docs/api.py > docs/api.md
	$(BIN)/python -m claims --page

docs: $(VENV)/docs  ## build these pages as a site into build/docs/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict --config-file docs/site/mkdocs.yml
	@echo "Open build/docs/index.html"

$(VENV)/docs: $(VENV)/plot
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@

samples: $(VENV)/installed  ## make sample_data/ again
	$(BIN)/python sample_data/make.py

quick: $(VENV)/installed  ## run the tests that take little, in a minute (ROOM="search methods")
	$(BIN)/python -m $(PYTEST) -q -m 'not slow' $(ROOM:%=tests/%)

test: $(VENV)/installed  ## run all tests, over all processors (JOBS=4)
	$(BIN)/python -m $(PYTEST)

coverage: $(VENV)/installed  ## count the lines and branches that tests reach: 95 % at least
	$(BIN)/coverage erase
	$(BIN)/coverage run -m $(PYTEST)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

test-cluster: $(VENV)/cluster  ## run the recipes on a real Slurm, which is installed (root)
	$(BIN)/python -m pytest tests/cluster.py

$(VENV)/cluster: $(VENV)/installed
	command -v slurmctld munged > /dev/null || (apt-get update && apt-get install --yes slurm-wlm munge)
	$(PYTHON) -m venv $(VENV)/snakemake
	$(VENV)/snakemake/bin/python -m pip install --quiet snakemake
	@touch $@

test-handover: $(VENV)/handover  ## run what docs/migration.md hands over, in other programs
	$(VENV)/others/bin/python -m pytest -q tests/project/test_handover.py tests/tasks/test_neighbors.py

$(VENV)/handover: $(VENV)/installed
	$(PYTHON) -m venv $(VENV)/others
	$(VENV)/others/bin/python -m pip install --quiet --editable '.[handover]' hypothesis networkx pytest pytest-timeout
	@touch $@

test-peers: $(VENV)/peers  ## compare with other people's programs on the same problems
	$(VENV)/rivals/bin/python -m pytest -q tests/tasks/test_peers.py

$(VENV)/peers: $(VENV)/installed
	$(PYTHON) -m venv $(VENV)/rivals
	$(VENV)/rivals/bin/python -m pip install --quiet --editable '.[peers]' hypothesis pytest pytest-timeout
	@touch $@

browser:  ## install the browser that tests of pages need (root, Debian)
	command -v chromium chromedriver > /dev/null || (apt-get update && apt-get install --yes chromium chromium-driver)

bench: $(VENV)/bench  ## print ratios to peers and lower bounds (BENCH="--data DIR --json")
	$(BIN)/python -m bench $(BENCH)

$(VENV)/bench: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable '.[dev,bench]'
	@touch $@

claims: $(VENV)/installed  ## measure what the pages claim: figures and verdicts (CLAIMS="speed memory" DATA=DIR)
	$(BIN)/python -m claims $(CLAIMS) $(if $(DATA),--data $(DATA))

paper: $(VENV)/installed  ## run the paper's experiments (DATA=DIR OUT=DIR QUICK=1 DOWNLOAD=1 PAPER="table1 ...")
	$(BIN)/python -m paper $(PAPER) $(if $(DATA),--data $(DATA)) --out $(OUT) $(if $(QUICK),--quick) $(if $(DOWNLOAD),--download)

study: $(VENV)/installed  ## compare graphs by what they are good for (DATA=DIR OUT=DIR QUICK=1)
	$(BIN)/python -m paper study noise node --data $(DATA) --out $(OUT) -j auto $(if $(QUICK),--quick)

fuzz: $(VENV)/installed  ## damage files and kill commands for ten minutes (FUZZ="--seconds 60 --seed 1")
	$(BIN)/python -m fuzz $(FUZZ)

mutants: $(VENV)/installed  ## break the package in 400 small ways, one at a time: tests notice 95 % at least (MUTANTS="--count 40 --seed 1 --only search")
	$(BIN)/python -m mutants $(MUTANTS)

lint: $(VENV)/installed  ## check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed  ## check types
	$(BIN)/mypy

check: test lint types  ## everything that CI checks

dist: $(VENV)/installed  ## build sdist and wheel into dist/
	$(BIN)/python -m build --no-isolation --outdir dist

clean:  ## remove what make made
	rm -rf $(VENV) $(DEMO) .coverage .coverage.* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
