# Everything a developer or a newcomer types. Each target sets up what it needs first.
.DEFAULT_GOAL := help
SHELL := /bin/bash

VENV    := .venv
PYTHON_ := $(VENV)/bin/python
STAMP   := $(VENV)/.installed
ROOT    ?= ./catalog
HOST    ?= 127.0.0.1
PORT    ?= 2333
WORKERS ?= 3

# Hundreds of processes that tests start import the project: it is compiled once.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo example test test-fast test-long test-spark-versions test-install fuzz histories soak model check generate docs serve bench tck-report locks dist audit clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 28

setup: $(STAMP) ## make .venv with everything in it, in exact versions

$(STAMP): pyproject.toml client/pyproject.toml requirements.txt scripts/setup.sh
	@scripts/setup.sh $(VENV)
	@touch $@

.PHONY: jar
jar: $(STAMP) ## compile the SQL catalog of Spark; needs a JDK, which is installed where we may
	@JAVA_HOME="$$(scripts/java.sh --jdk)" && export JAVA_HOME && $(PYTHON_) scripts/build_jar.py

demo: $(STAMP) ## publish a real graph atomically, then read it back; with KEEP=1 its console is served afterwards
	@JAVA_HOME="$$(scripts/java.sh)" && export JAVA_HOME PATH="$$JAVA_HOME/bin:$$PATH" && $(PYTHON_) examples/nyc_flights.py $(if $(KEEP),--serve)

EDGES ?= 200000
example: $(STAMP) ## ten days of a social graph of EDGES edges, three writers, plots in build/social-graph
	@JAVA_HOME="$$(scripts/java.sh --jdk)" && export JAVA_HOME PATH="$$JAVA_HOME/bin:$$PATH" && $(PYTHON_) scripts/build_jar.py >/dev/null && \
		PYTHONPATH=.:examples $(PYTHON_) -W ignore -m social_graph --edges $(EDGES)

test: $(STAMP) ## all tests but those of test-long, in WORKERS processes (3: each waits for others a quarter of its time)
	@scripts/azurite.sh >/dev/null || [ -z "$$CI" ]
	@scripts/oidc_provider.sh >/dev/null || [ -z "$$CI" ]
	@scripts/lancedb_node.sh >/dev/null || [ -z "$$CI" ]
	@scripts/lancedb_before.sh $(PYTHON_) >/dev/null || [ -z "$$CI" ]
	@scripts/vector_stores.sh $(PYTHON_) >/dev/null || [ -z "$$CI" ]
	@scripts/chromium.sh >/dev/null || [ -z "$$CI" ]
	@scripts/postgres.sh >/dev/null || [ -z "$$CI" ]
	@JAVA_HOME="$$(scripts/java.sh --jdk)" && export JAVA_HOME PATH="$$JAVA_HOME/bin:$$PATH" && $(PYTHON_) -m pytest -n $(WORKERS) -m "not long" --durations=15

test-long: $(STAMP) ## clusters, kills and holds at every call, the large example; twenty minutes
	@JAVA_HOME="$$(scripts/java.sh --jdk)" && export JAVA_HOME PATH="$$JAVA_HOME/bin:$$PATH" && $(PYTHON_) -m pytest -n $(WORKERS) -m long --durations=15

test-fast: $(STAMP) ## two minutes of tests: without Java, emulators, PostgreSQL and what takes long
	@$(PYTHON_) -m pytest -n $(WORKERS) -m "not services and not slow and not spark and not long"

test-spark-versions: $(STAMP) ## SQL on the other supported versions of pyspark, installed into .cache (1 GB)
	@JAVA_HOME="$$(scripts/java.sh --jdk)" && export JAVA_HOME PATH="$$JAVA_HOME/bin:$$PATH" && scripts/test_spark_versions.sh $(PYTHON_)

test-install: ## install the wheels with what they need from the package index, newest and lowest, and try them
	@python3 scripts/try_install.py newest lowest

fuzz: $(STAMP) ## 50,000 requests generated from the OpenAPI document, to a server over HTTP; an hour
	@LANCE_FUZZ_EXAMPLES=900 $(PYTHON_) -m pytest tests/fuzz -s --timeout 0

LANCE_HISTORIES_SECONDS ?= 7200
histories: $(STAMP) ## random histories of many clients and faults, checked; for LANCE_HISTORIES_SECONDS (7200)
	@LANCE_HISTORIES_SECONDS=$(LANCE_HISTORIES_SECONDS) $(PYTHON_) -m tests.histories.run

soak: $(STAMP) ## 64 clients and three servers on a bucket, with kills and pauses; for LANCE_SOAK_SECONDS (1200)
	@$(PYTHON_) -m tests.histories.soak $(LANCE_SOAK_SECONDS)

model: $(STAMP) ## search the models of collection completely, and compare their figures with note 019
	@PYTHONPATH=. $(PYTHON_) -m tests.directory.gc.model.report

check: $(STAMP) ## style, types, dependency directions, generated files, documentation
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target check-types check-others

.PHONY: check-types check-others
check-types: $(STAMP)
	$(VENV)/bin/mypy

check-others: $(STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	PYTHONPATH=. $(VENV)/bin/lint-imports
	$(PYTHON_) scripts/generate_protos.py --check
	$(PYTHON_) scripts/generate_client.py --check
	$(PYTHON_) scripts/generate_cli_reference.py --check
	$(PYTHON_) scripts/generate_settings.py --check
	$(PYTHON_) scripts/generate_metrics.py --check
	@$(MAKE) --no-print-directory docs

generate: $(STAMP) ## regenerate messages, client, and the reference of commands, settings and metrics
	$(PYTHON_) scripts/generate_protos.py
	$(PYTHON_) scripts/generate_client.py
	$(PYTHON_) scripts/generate_cli_reference.py
	$(PYTHON_) scripts/generate_settings.py
	$(PYTHON_) scripts/generate_metrics.py

docs: $(STAMP) ## build the documentation into build/site; broken links are errors
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict

serve: $(STAMP) ## serve ROOT on HOST:PORT (./catalog on 127.0.0.1:2333)
	@$(VENV)/bin/lance-namespace serve --root "$(ROOT)" --host "$(HOST)" --port "$(PORT)"

bench: $(STAMP) ## measure against pylance's own server, write benchmarks/results/
	@$(PYTHON_) -m benchmarks

tck-report: $(STAMP) ## run the conformance kit here and on pylance's own server, write docs/reference/conformance.md
	@$(PYTHON_) scripts/generate_conformance.py

locks: ## write requirements.txt again, with the hashes of all files, after a change of constraints.txt
	@scripts/lock.sh

dist: $(STAMP) ## build both wheels, with the bill of materials (CycloneDX) of a server, into dist
	@JAVA_HOME="$$(scripts/java.sh --jdk)" && export JAVA_HOME && scripts/dist.sh $(PYTHON_)

audit: ## ask an advisory database about every distribution that is installed by us; exits 2 if there is none
	@bin="$$(scripts/supply_chain.sh)" && "$$bin/python" scripts/audit.py "$$bin/pip-audit" requirements.txt deploy/container/requirements.txt

clean: ## remove the environment and everything built
	rm -rf $(VENV) .cache build client/build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
