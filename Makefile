# Every target is a one-line alias of `spmrl-bench` or of a development tool. The first call makes
# the virtual environment, installs the pinned dependencies and builds the kernels; what only some
# targets need is installed by the first of these.
#
#   make lang=german train eval                 train both variants, score the better one
#   make lang=german seeds=5 jobs=2 train eval  options pass through when given
#   make lang=german set="train.max_epochs=5" train   settings of the recipe
#   make track=mini seeds=2 train eval          every language of a track
#   make table | recipes | treebanks            results; what can be trained; what is present
#   make site                                   results as static pages, results/site/index.html
#   make study=encoders treebank=NAME study     one of the papers' experiments
#   make lang=german variant=charlstm trials=12 set='train.learning_rate=log:1e-4:5e-3' search
#   make check treebank=NAME                    read a treebank (or all) and list what is wrong
#   make add dir=DIR lang=german                look at a folder; yes=1 writes a manifest and a recipe
#   make model=runs/NAME parse < words.txt      parse
#   make gold=gold.mrg test=parses.mrg score    score a file of parses
#   make test | lint | campaign | bench         tests; ruff and mypy; the long checks; speed
#   make test order=7                           tests in a random order, that of the seed 7
#   make coverage                               branches that the tests take, in the rooms that have to be exact
#   make size                                   lines of each room, and whether they are within the limit
#   make same BASE=COMMIT                       models, records and trainings of another version, as they were
#   make attack                                 hostile files against the commands, kept in attack/
#   make minigen                                tests of the generator of the mini treebanks
#   make docs                                   the documentation as a site, in site/

PYTHON ?= python3
VENV ?= .venv
COMPAT ?= ../shared/compat
BIN := $(VENV)/bin
CORE := $(VENV)/.core
BENCH := $(BIN)/spmrl-bench
MEASURED := scoring readers chart storage
COVERING := $(MEASURED) trees treebanks packages training experiments/test_recipe.py \
	reliability/test_hostile_treebanks.py reliability/test_hostile_models.py cli/test_score.py
KERNELS := $(shell find spmrl_bench -name '*.pyx' -o -name '*.pxi' -o -name '*.h')
LOCK := 'import fcntl, subprocess, sys; file = open(sys.argv[1], "w"); fcntl.flock(file, 2); sys.exit(subprocess.call(sys.argv[2:]))'
ALONE := $(PYTHON) -c $(LOCK) $(VENV)-lock $(MAKE) --no-print-directory
PIP := $(BIN)/python -m pip install --quiet -c constraints.txt

# The variables of each target. They become --NAME VALUE, but for lang (the argument), set
# (KEY=VALUE pairs with spaces between them) and those that stand for a flag or an argument.
VARS.train := lang track languages treebank variant system size seed seeds device minutes jobs set
VARS.eval := $(VARS.train) ensemble
VARS.table := treebank track
VARS.parse := model input device
VARS.score := gold test prm
VARS.study := study treebank lang size seeds jobs device set
VARS.search := lang treebank track variant size seed minutes jobs trials pruner device set
VARS.check := treebank
VARS.add := dir lang yes
VARS.test := order

# What the command line gives to a variable, as one word of the shell; the environment gives nothing.
define LINE


endef
given = $(if $(filter command,$(firstword $(origin $(1)))),$(if $(value $(1)),$(call quoted,$(value $(1)))))
quoted = '$(subst $(LINE), ,$(subst ','\'',$(1)))'
options = $(foreach name,$(filter-out lang set $(1),$(VARS.$@)),$(if $(call given,$(name)),--$(name) $(call given,$(name)))) \
	$(if $(call given,set),$(foreach pair,$(value set),--set $(call quoted,$(pair))))

# A variable that no target takes would be ignored, and something else be trained. Those with
# capital letters are for Python, the compiler and other programs.
KNOWN := $(sort $(foreach goal,$(MAKECMDGOALS),$(VARS.$(goal))))
CAPITALS := $(foreach letter,A B C D E F G H I J K L M N O P Q R S T U V W X Y Z,$(letter)%)
GIVEN := $(foreach variable,$(subst $(LINE),~,$(subst \ ,~,$(MAKEOVERRIDES))),$(firstword $(subst =, ,$(variable))))
UNKNOWN := $(filter-out $(KNOWN) $(CAPITALS),$(GIVEN))
$(if $(and $(UNKNOWN),$(LOCK)),$(error unknown: $(UNKNOWN). Known to $(MAKECMDGOALS): $(or $(KNOWN),no variable)))

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# An exported value would be expanded, and $(shell ...) in it run.
unexport $(GIVEN)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help install train eval study search table site parse score recipes treebanks check add test coverage lint size same campaign attack bench minigen docs

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

install: $(CORE) $(VENV)/.extra-dev

# One make at a time installs; what waits finds it done.
$(CORE): pyproject.toml setup.py constraints.txt $(KERNELS)
ifdef LOCK
	@command -v $(PYTHON) >/dev/null || { \
	  echo "make: no program '$(PYTHON)': install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(ALONE) LOCK= $@
else
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: '$(PYTHON)' is $$($(PYTHON) --version 2>&1): Python 3.11 or newer is needed; name one: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "make: '$(PYTHON)' comes without the venv module: install it (on Debian and Ubuntu: the package python3-venv)" >&2; exit 1; }
	@echo "Installing into $(VENV) (once; a minute or two)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) setuptools cython
	@$(PIP) --no-build-isolation -e '.[train]'
	@touch $@
endif

# The packages alone: `-e '.[dev]'` would build the kernels again.
$(VENV)/.extra-%: $(CORE)
ifdef LOCK
	@$(ALONE) LOCK= $@
else
	@echo "Installing what '$*' needs (once)"
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["$*"], sep="\n")' >$@.txt
	@$(PIP) -r $@.txt
	@touch $@
endif

train: $(CORE)
	@$(BENCH) train $(call given,lang) $(call options)

eval: $(CORE)
	@$(BENCH) eval $(call given,lang) $(call options,ensemble) $(if $(call given,ensemble),--ensemble)

table: $(CORE)
	@$(BENCH) results table $(call options)

site: $(VENV)/.extra-report
	@$(BENCH) results site

parse: $(CORE)
	@$(BENCH) parse $(call options)

score: $(CORE)
	@$(BENCH) score $(call given,gold) $(call given,test) $(call options,gold test)

study: $(VENV)/.extra-report
	@$(BENCH) study run $(call given,study) $(call options,study) $(if $(call given,lang),--lang $(call given,lang))

search: $(VENV)/.extra-search
	@$(BENCH) study search $(call given,lang) $(call options)

recipes treebanks: $(CORE)
	@$(BENCH) $@ list

check: $(CORE)
	@$(BENCH) treebanks check $(or $(call given,treebank),all)

add: $(CORE)
	@$(BENCH) treebanks add $(call given,dir) $(if $(call given,lang),--language $(call given,lang)) $(if $(call given,yes),--yes)

# A process for each core, each with one thread: threads of several processes wait for each other.
test: install
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n auto --dist loadscope $(if $(call given,order),-p randomly --randomly-seed=$(call given,order))

# Of the rooms on which every figure rests, by the tests of these and of what uses them.
coverage: install
	@OMP_NUM_THREADS=1 $(BIN)/pytest -q -n auto --dist loadscope --cov --cov-report= $(COVERING:%=tests/%)
	@for room in $(MEASURED); do printf '%s, lines and branches in percent: ' $$room; $(BIN)/coverage report --format=total \
	  --precision=1 --include="spmrl_bench/$$room/*" --fail-under=97 || exit 1; done

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

size:
	@$(PYTHON) tools/size.py

# BASE is installed beside the checkout, once, and both train the same.
same: install
	@test -x $(COMPAT)/same || { echo "make: no $(COMPAT)/same: COMPAT=FOLDER says where it is" >&2; exit 1; }
	@test -n $(call quoted,$(BASE)) || { echo "make: with which version? make same BASE=COMMIT" >&2; exit 1; }
	@test -d ../base-$(BASE) || git worktree add ../base-$(BASE) $(BASE)
	@test -x ../base-$(BASE)/$(VENV)/bin/spmrl-bench || $(MAKE) -C ../base-$(BASE) install
	$(COMPAT)/same . ../base-$(BASE)

campaign: install
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n auto --dist loadgroup -m 'campaign or not campaign' --reliability-report=docs/reliability.md

attack: install
	$(BIN)/python -m tests.reliability.attack attack

minigen: install
	$(BIN)/pytest -q tools/minigen

docs: install $(VENV)/.extra-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "look at it: $(BIN)/python -m http.server --directory site"

bench: install
	@mkdir -p .benchmarks
	$(BIN)/pytest -q tests/benchmarks --benchmark-enable --benchmark-only --benchmark-json=.benchmarks/latest.json
