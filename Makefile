# Every target is a one-line alias of `spmrl-bench` or of a development tool. The first call makes
# the virtual environment, installs the pinned dependencies and builds the kernels; what only some
# targets need is installed by the first of these.
#
#   make lang=german train eval                 train all variants, score the best one
#   make lang=german seeds=5 jobs=2 train eval  options pass through when given
#   make lang=german set="train.max_epochs=5" train   settings of the recipe
#   make track=mini seeds=2 train eval          every language of a track
#   make table | recipes | treebanks            results; what can be trained; what is present
#   make models                                 the best parser of each treebank in runs/, packaged
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

# A value is what was typed, in one line, and means nothing to make or the shell.
define newline


endef
GIVEN := $(sort $(foreach name,$(.VARIABLES),$(if $(findstring command,$(origin $(name))),$(name))))
$(foreach name,$(GIVEN),$(eval override $(name) := $$(subst $$(newline), ,$$(value $(name)))))

PYTHON ?= python3
VENV ?= .venv
COMPAT ?= ../shared/compat
MEASURED := scoring readers chart storage
COVERING := $(MEASURED) trees treebanks packages training experiments/test_recipe.py \
	reliability/test_hostile_treebanks.py reliability/test_hostile_models.py cli/test_score.py
KERNELS := $(shell find spmrl_bench -name '*.pyx' -o -name '*.pxi' -o -name '*.h')

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

# One word of the shell, whatever is in the text.
quoted = '$(subst ','\'',$(1))'
argument = $(if $($(1)),$(call quoted,$($(1))))
options = $(foreach name,$(filter-out lang set $(1),$(VARS.$@)),$(if $($(name)),--$(name) $(call quoted,$($(name))))) \
	$(foreach pair,$(set),--set $(call quoted,$(pair)))

# A variable that no target takes would be ignored, and something else be trained. Those with
# capital letters are for Python, the compiler and other programs.
KNOWN := $(sort $(foreach goal,$(MAKECMDGOALS),$(VARS.$(goal))))
CAPITALS := $(foreach letter,A B C D E F G H I J K L M N O P Q R S T U V W X Y Z,$(letter)%)
UNKNOWN := $(filter-out $(KNOWN) $(CAPITALS),$(GIVEN))
$(if $(UNKNOWN),$(error unknown: $(UNKNOWN). Known to $(MAKECMDGOALS): $(or $(KNOWN),no variable)))

# The environment gives nothing but those with capital letters.
$(foreach name,$(filter-out $(GIVEN),$(foreach target,$(filter VARS.%,$(.VARIABLES)),$($(target)))),$(eval override $(name) :=))
$(if $(shell case $(call quoted,$(VENV)) in (*[[:blank:]:\;%*?[=\|]*) echo no;; esac),$(error VENV: '$(VENV)': \
	make takes no path with blanks or any of : ; % * ? [ = |))

BIN := $(call quoted,$(VENV)/bin)
BENCH := $(call quoted,$(VENV)/bin/spmrl-bench)
THERE := $(call quoted,../base-$(BASE))
PIP := $(BIN)/python -m pip install --quiet -c constraints.txt
# An environment that is linked belongs to another checkout: it gives the packages, this one the code.
LINKED := $(shell test -L $(call quoted,$(VENV)) && echo yes)
CORE := $(if $(LINKED),build,$(VENV))/.core
$(if $(LINKED),$(eval export PYTHONPATH := $$(CURDIR)$$(if $$(PYTHONPATH),:$$(PYTHONPATH))))
# Done by one make at a time, and by the next only if it has not been done by then.
alone = mkdir -p $(call quoted,$(@D)) && $(call quoted,$(PYTHON)) -c 'import fcntl, os, sys; lock = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR); \
	fcntl.flock(lock, fcntl.LOCK_EX); os.set_inheritable(lock, True); os.execvp("sh", ["sh", "-ec", sys.argv[2]])' $(call quoted,$(@D)/.lock) \
	$(call quoted,test -n "$$(find $(foreach file,$^ $@,$(call quoted,$(file))) -newer $(call quoted,$@) 2>&1)" || exit 0; $(1); touch $(call quoted,$@))

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help install train eval study search table models site parse score recipes treebanks check add test coverage lint size same campaign attack bench minigen docs

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

install: $(CORE) $(VENV)/.extra-dev

$(CORE): pyproject.toml setup.py constraints.txt $(KERNELS)
	@python=$(call quoted,$(PYTHON)); command -v "$$python" >/dev/null || { \
	  echo "make: no program '$$python': install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3.12" >&2; exit 1; }; \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: '$$python' is $$("$$python" --version 2>&1): Python 3.11 or newer is needed; name one: make PYTHON=/path/to/python3.12" >&2; exit 1; }; \
	"$$python" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "make: '$$python' comes without the venv module: install it (on Debian and Ubuntu: the package python3-venv)" >&2; exit 1; }
	@$(call alone,$(if $(LINKED),$(building),$(installing)))

building = echo "Building the kernels (once)"; $(BIN)/python setup.py --quiet build_ext --inplace
installing = echo "Installing into" $(call quoted,$(VENV)) "(once; a minute or two)"; \
	test -x $(BIN)/python || $(call quoted,$(PYTHON)) -m venv $(call quoted,$(VENV)); \
	$(PIP) setuptools cython; $(PIP) --no-build-isolation -e '.[train]'

# The packages alone: `-e '.[dev]'` would build the kernels again.
$(VENV)/.extra-%: $(if $(LINKED),|) $(CORE)
	@$(call alone,$(adding))

adding = echo "Installing what $* needs (once)"; \
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["$*"], sep="\n")' >$(call quoted,$@.txt); \
	$(PIP) -r $(call quoted,$@.txt)

train: $(CORE)
	@$(BENCH) train $(call options) -- $(call argument,lang)

eval: $(CORE)
	@$(BENCH) eval $(call options,ensemble) $(if $(ensemble),--ensemble) -- $(call argument,lang)

table: $(CORE)
	@$(BENCH) results table $(call options)

models: $(CORE)
	@set --; for best in runs/*/*/best; do set -- "$$@" "$${best%/best}"; done; $(BENCH) model package --bf16 --to packages -- "$$@"

site: $(VENV)/.extra-report
	@$(BENCH) results site

parse: $(CORE)
	@$(BENCH) parse $(call options)

score: $(CORE)
	@$(BENCH) score $(call options,gold test) -- $(call argument,gold) $(call argument,test)

study: $(VENV)/.extra-report
	@$(BENCH) study run $(call options,study) $(if $(lang),--lang $(call quoted,$(lang))) -- $(call argument,study)

search: $(VENV)/.extra-search
	@$(BENCH) study search $(call options) -- $(call argument,lang)

recipes treebanks: $(CORE)
	@$(BENCH) $@ list

check: $(CORE)
	@$(BENCH) treebanks check -- $(call quoted,$(or $(treebank),all))

add: $(CORE)
	@$(BENCH) treebanks add $(if $(lang),--language $(call quoted,$(lang))) $(if $(yes),--yes) -- $(call argument,dir)

# A process for each core, each with one thread: threads of several processes wait for each other.
test: install
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n auto --dist loadscope --no-loadscope-reorder $(if $(order),-p randomly --randomly-seed=$(call quoted,$(order)))

# Of the rooms on which every figure rests, by the tests of these and of what uses them.
coverage: install
	@OMP_NUM_THREADS=1 $(BIN)/pytest -q -n auto --dist loadscope --no-loadscope-reorder --cov --cov-report= $(COVERING:%=tests/%)
	@for room in $(MEASURED); do printf '%s, lines and branches in percent: ' $$room; $(BIN)/coverage report --format=total \
	  --precision=1 --include="spmrl_bench/$$room/*" --fail-under=97 || exit 1; done

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

size:
	@$(call quoted,$(PYTHON)) tools/size.py

# BASE is installed beside the checkout, once, and both train the same.
same: install
	@test -x $(call quoted,$(COMPAT)/same) || { echo "make: no" $(call quoted,$(COMPAT)/same): COMPAT=FOLDER says where it is >&2; exit 1; }
	@test -n $(call quoted,$(BASE)) || { echo "make: with which version? make same BASE=COMMIT" >&2; exit 1; }
	@test -d $(THERE) || git worktree add $(THERE) $(call quoted,$(BASE))
	@test -x $(THERE)/$(BIN)/spmrl-bench || $(MAKE) -C $(THERE) install
	$(call quoted,$(COMPAT)/same) . $(THERE)

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
