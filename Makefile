# The six words of a developer. Everything that matters is in start.py and pyproject.toml, for systems without make.
PYTHON ?= python3
VENV := .venv/bin/python

.PHONY: check test gpu docs lab fix

check: $(VENV)  ## format, lint, types, layers, tests without GPU
	$(VENV) -m ruff format --check .
	$(VENV) -m ruff check .
	$(VENV) -m basedpyright
	.venv/bin/lint-imports
	$(PYTHON) start.py test

test:  ## the tests; ARGS="-k swizzle" chooses
	$(PYTHON) start.py test -- $(ARGS)

gpu:  ## the tests that need a GPU
	$(PYTHON) start.py test -- -m gpu $(ARGS)

docs: $(VENV)  ## build docs/ and check its links
	$(VENV) docs/build.py

lab:  ## the course in JupyterLab; ARGS="--no-browser" goes to JupyterLab
	$(PYTHON) start.py lab -- $(ARGS)

fix: $(VENV)  ## format and repair what ruff can
	$(VENV) -m ruff format .
	$(VENV) -m ruff check --fix .

$(VENV):
	$(PYTHON) start.py test -- --collect-only -q
