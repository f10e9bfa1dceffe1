# Two commands matter: `make demo` and `make test`. Both do all their own set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadgroup
# What can run on any server that is named in TAILRACE_MONGOD.
LIVE := $(wildcard tests/live tests/fault tests/conformance)

.PHONY: help demo pymongo-source test test-fast test-live test-mongodb-7.0 check format lock reference soak bench-engine bench-driver bench-router conformance clean

help:
	@grep -E '^[a-z][a-z0-9.-]*:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 22

$(READY): requirements/dev.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY) ## the main job, on an embedded MongoDB, in under 2 minutes
	$(BIN)/tailrace demo

test: $(READY) pymongo-source ## every test (real servers included), under 15 minutes
	$(PYTEST) tests

test-fast: $(READY) ## the tests that need no server, under 30 s
	$(PYTEST) -q tests/unit tests/property tests/recorded tests/house

pymongo-source: $(READY)
	@$(BIN)/python scripts/pymongo_source.py >/dev/null

test-live: $(READY) pymongo-source
	$(PYTEST) $(LIVE)

test-mongodb-7.0: $(READY) pymongo-source ## the live MongoDB tests on 7.0 (Windows build under Wine; root on Debian)
	$(BIN)/python scripts/mongodb_7_0.py $(PYTEST) $(LIVE)

check: $(READY) ## format, lint, types, house
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -p no:randomly tests/house

format: $(READY) ## let ruff write the format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: $(READY) ## renew requirements/dev.lock from pyproject.toml
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --universal --python-version 3.10 --extra dev --extra embedded --extra postgres --extra spark \
		pyproject.toml --generate-hashes --no-header --no-emit-index-url -q -o requirements/dev.lock

reference: $(READY) ## renew docs/reference from the code
	$(BIN)/python scripts/reference.py

.PHONY: bench-spark
bench-spark: $(READY) ## the Spark source against the server's own stream, as ratios
	$(BIN)/python benchmarks/spark.py

soak: $(READY) pymongo-source ## the long runs of the live tests (TAILRACE_SOAK scales them)
	TAILRACE_SOAK=$${TAILRACE_SOAK:-20} $(PYTEST) --timeout 7200 tests/property tests/spark $(LIVE)

bench-engine: $(READY) ## engine against the server's own change stream, as ratios
	$(BIN)/python benchmarks/engine.py

bench-driver: $(READY) ## our change stream against PyMongo's, as ratios
	$(BIN)/python benchmarks/driver.py

conformance: $(READY) pymongo-source ## where each official case runs (renews a page of the docs)
	$(BIN)/python scripts/conformance.py

bench-router: $(READY) ## one stream over 1 to 4 real shards and 1 to 64 simulated ones
	$(BIN)/python benchmarks/router.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
