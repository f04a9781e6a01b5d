# `make serve` and `make test` work from a fresh checkout. The other targets are for contributors; see CONTRIBUTING.md.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

BIN := .venv/bin
CORPORA ?=

# Bytecode of the tests is kept: rewriting their assertions takes longer than many of them.
# More workers than cores: many tests wait for programs that they started.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest

.PHONY: help setup web serve test quick mutants conformance agents check format docs bench fuzz attack clean

help: ## List the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

setup: ## Create .venv and install into it (the other targets do this automatically)
	@.ci/setup

web: ## Build the web console from web/
	@.ci/web

serve: setup ## Serve the console, REST and MCP at http://127.0.0.1:8733
	@$(BIN)/toolreeve serve

test: setup ## Run all tests; installs the programs they need
	@.ci/programs
	.ci/peers
	$(PYTEST) -n 4 --dist worksteal

quick: setup ## Run the tests that start no other program: for the inner loop
	@$(PYTEST) -n 2 --dist worksteal --quick

mutants: setup ## Change the modules that guard, one place at a time: do their tests notice?
	@$(BIN)/python -m bench.mutants

conformance: setup ## Run the public MCP conformance suite, as server, gateway and client
	@.ci/peers
	$(BIN)/python -m pytest tests/conformance

agents: setup ## Run scenarios with seven real agents, over MCP and ACP, offline; installs them (1.5 GB)
	@.ci/agents
	.ci/offline $(BIN)/python -m pytest tests/real_agents

check: setup ## Check format, lint, types and import contracts
	@$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	.ci/web run check

format: setup ## Format the code
	@$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	.ci/web run format

docs: setup ## Generate docs/reference from the code
	@$(BIN)/python docs/generate.py

bench: setup ## Run the benchmarks; prints a table and saves it as JSON
	@$(BIN)/python -m bench.run

fuzz: setup ## Send 5,000 generated requests to the REST API
	@$(BIN)/python -m bench.schema_fuzz 5000

attack: setup ## Run the attacks on the guards; CORPORA=dir adds payload lists
	@$(BIN)/python bench/attack.py $(if $(CORPORA),--corpora "$(CORPORA)")

clean: ## Remove everything that was generated
	@rm -rf .venv .peers .node .agents .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache dist build web/node_modules src/toolreeve/console
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
