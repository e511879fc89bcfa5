# Every target is a one-line alias of `spmrl-bench` or of a development tool; the first call
# creates the virtual environment, installs the pinned dependencies and builds the extension.
#
#   make lang=german train eval                 train both variants, score the better one
#   make lang=german seeds=5 jobs=2 train eval  options pass through when given
#   make lang=german set="train.max_epochs=5" train   settings of the recipe
#   make track=mini seeds=2 multilingual        every language of a track, and one table of all
#   make study=encoders treebank=NAME study     one of the paper's experiments
#   make lang=german variant=charlstm trials=12 set='train.learning_rate=log:1e-4:5e-3' search
#   make table | recipes | treebanks            results; what can be trained; what is present
#   make site                                   results as static pages, results/site/index.html
#   make validate treebank=NAME                 read a treebank (or all) and list what is wrong
#   make new-treebank dir=DIR lang=german       look at a folder; yes=1 writes a manifest and a recipe
#   make test | lint | campaign | bench         tests; ruff and mypy; the long checks; speed
#   make size                                   lines of each room, and whether they are within the limit
#   make same BASE=COMMIT                       models, records and trainings of another version, as they were
#   make test order=7                           tests in a random order, that of the seed 7
#   make minigen                                tests of the generator of the mini treebanks
#   make docs                                   the documentation as a site, in site/

PYTHON ?= python3
VENV ?= .venv
COMPAT ?= ../shared/compat
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
BENCH := $(BIN)/spmrl-bench
EXTENSIONS := $(wildcard spmrl_bench/*/*.pyx spmrl_bench/*/*.pxi spmrl_bench/*/*.h)

# lang= is the argument of train and eval; the others become --NAME VALUE. ensemble=1 is for eval;
# set= holds KEY=VALUE pairs with spaces between them.
option = $(if $($(1)),--$(1) $($(1)))
options = $(foreach name,$(1),$(call option,$(name))) $(foreach pair,$(set),--set $(pair))
RUN_OPTIONS = $(lang) $(call options,treebank track variant size seed seeds device minutes jobs)

# A variable that is misspelt would be ignored, and something else be trained. Those with capital
# letters are for Python, the compiler and other programs.
VARIABLES := lang treebank track variant size seed seeds device minutes jobs ensemble set languages \
	study trials pruner model input gold test prm dir yes order
CAPITALS := $(foreach letter,A B C D E F G H I J K L M N O P Q R S T U V W X Y Z,$(letter)%)
NO_SPACE := $(subst \ ,~,$(MAKEOVERRIDES))
GIVEN := $(foreach variable,$(NO_SPACE),$(firstword $(subst =, ,$(variable))))
UNKNOWN := $(filter-out $(VARIABLES) $(CAPITALS),$(GIVEN))
$(if $(UNKNOWN),$(error unknown: $(UNKNOWN). Known: $(VARIABLES)))

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help install train eval multilingual study search table site parse score recipes treebanks validate new-treebank test lint size same campaign bench minigen docs

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

install: $(INSTALLED)

$(INSTALLED): pyproject.toml setup.py constraints.txt $(EXTENSIONS)
	@command -v $(PYTHON) >/dev/null || { \
	  echo "make: no program '$(PYTHON)': install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: '$(PYTHON)' is $$($(PYTHON) --version 2>&1): Python 3.11 or newer is needed; name one: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "make: '$(PYTHON)' comes without the venv module: install it (on Debian and Ubuntu: the package python3-venv)" >&2; exit 1; }
	@echo "Installing into $(VENV) (once; a few minutes)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt setuptools cython
	$(BIN)/python -m pip install --quiet -c constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@

train: $(INSTALLED)
	@$(BENCH) train $(RUN_OPTIONS)

eval: $(INSTALLED)
	@$(BENCH) eval $(RUN_OPTIONS) $(if $(ensemble),--ensemble)

multilingual: $(INSTALLED)
	@$(BENCH) multilingual $(call options,track languages variant size seeds jobs device)

study: $(INSTALLED)
	@$(BENCH) study $(study) $(call options,treebank lang size seeds jobs device)

search: $(INSTALLED)
	@$(BENCH) search $(RUN_OPTIONS) $(call option,trials) $(call option,pruner)

table: $(INSTALLED)
	@$(BENCH) table

site: $(INSTALLED)
	@$(BENCH) site

parse: $(INSTALLED)
	@$(BENCH) parse $(call option,model) $(call option,input) $(call option,device)

score: $(INSTALLED)
	@$(BENCH) score $(gold) $(test) $(call option,prm)

recipes: $(INSTALLED)
	@$(BENCH) recipes

treebanks: $(INSTALLED)
	@$(BENCH) treebanks

validate: $(INSTALLED)
	@$(BENCH) validate $(or $(treebank),all)

new-treebank: $(INSTALLED)
	@$(BENCH) new-treebank $(dir) $(if $(lang),--language $(lang)) $(if $(yes),--yes)

# A process for each core, each with one thread: threads of several processes wait for each other.
test: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n auto $(if $(order),-p randomly --randomly-seed=$(order))

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

size:
	@$(PYTHON) tools/size.py

# BASE is installed beside the checkout, once, and both train the same.
same: $(INSTALLED)
	@test -x $(COMPAT)/same || { echo "make: no $(COMPAT)/same: COMPAT=FOLDER says where it is" >&2; exit 1; }
	@test -n '$(BASE)' || { echo "make: with which version? make same BASE=COMMIT" >&2; exit 1; }
	@test -d ../base-$(BASE) || git worktree add ../base-$(BASE) $(BASE)
	@test -x ../base-$(BASE)/$(VENV)/bin/spmrl-bench || $(MAKE) -C ../base-$(BASE) install
	$(COMPAT)/same . ../base-$(BASE)

campaign: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n auto --dist loadgroup -m 'campaign or not campaign' --reliability-report=docs/reliability.md

minigen: $(INSTALLED)
	$(BIN)/pytest -q tools/minigen

# The site's own packages, which nothing else needs; once, like the others.
$(VENV)/.installed-docs: $(INSTALLED)
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")' >$(VENV)/docs.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -r $(VENV)/docs.txt
	@touch $@

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "look at it: $(BIN)/python -m http.server --directory site"

bench: $(INSTALLED)
	@mkdir -p .benchmarks
	$(BIN)/pytest -q tests/benchmarks --benchmark-enable --benchmark-only --benchmark-json=.benchmarks/latest.json
