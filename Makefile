# Needs Python 3.11+ and Java 17+, nothing else. Everything is installed into .venv, inside this clone.

PYTHON ?= python3
BIN    := .venv/bin
READY  := .venv/.ready

# make bench runs every file of benchmarks/ whose name does not start with an underscore, and every folder that is a program
BENCHMARKS := $(filter-out _%,$(notdir $(basename $(wildcard benchmarks/*.py)) $(patsubst %/,%,$(dir $(wildcard benchmarks/*/__main__.py)))))

# Two processes, each with a Spark session of its own where one is needed: one test alone keeps one core busy.
PYTEST := $(BIN)/python -m pytest -q -n 2 --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help setup kernel demo test check lint soak fuzz bench bench-log bench-queue bench-engine bench-tpch bench-growth bench-windows bench-nexmark bench-rivals bench-latency bench-kafka bench-stores bench-serve bench-scale flink cluster cluster-stop kafka kafka-stop kafka-jars rabbitmq rabbitmq-stop postgres postgres-stop redis redis-stop format wheel clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: kernel ## make .venv with all dependencies, build the kernel; quick when nothing has changed

demo: setup ## a shop's pipeline at work: orders arrive, customers move, views change; half a minute. KEEP=1 keeps it at work, with its dashboard
	@$(BIN)/penstock demo $(if $(KEEP),--keep)

test: setup ## all tests, two side by side: those that need no Spark, then the others; with Kafka where Maven is there, with RabbitMQ, PostgreSQL, Redis and Chromium where apt-get is
	@$(PYTEST) -m "not spark"
	@$(PYTEST) -m spark

check: lint ## lint, and the tests that need no Java
	@$(PYTEST) -m "not spark and not kafka and not rabbitmq and not postgres and not redis and not chromium"

lint: $(READY) ## format, lint, types, imports between rooms
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

soak: setup ## all tests with many more random cases, none left out because a service is not there; takes long
	@PENSTOCK_SOAK=1 PENSTOCK_SERVICES=required $(BIN)/python -m pytest --timeout=0

fuzz: setup ## random nested queries against Spark batch, for MINUTES=10
	@MINUTES=$(or $(MINUTES),10) $(BIN)/python -m pytest -q -s tests/engine/fuzz.py

bench: setup ## every benchmark in benchmarks/, hours; one that fails does not keep the others from running
	@for needed in flink .venv-rivals/.ready; do $(MAKE) --no-print-directory $$needed || true; done
	@failed=; for name in $(BENCHMARKS); do echo "== $$name"; $(BIN)/python -m benchmarks.$$name || failed="$$failed $$name"; done; \
	  test -z "$$failed" || { echo "failed:$$failed" >&2; exit 1; }

bench-log: setup ## the benchmark of the log
	@$(BIN)/python -m benchmarks.log

bench-queue: setup ## a queue whose messages are acknowledged one by one, and a group
	@$(BIN)/python -m benchmarks.queue

bench-engine: setup ## the benchmark of the engine, against Spark's own aggregation and Python
	@$(BIN)/python -m benchmarks.engine

bench-tpch: setup ## TPC-H as views against Spark batch; SF=1 is the scale, QUERIES=q01,q03 takes some, RESUME=1 goes on where a run was cut off
	@$(BIN)/python -m benchmarks.tpch $(if $(SF),--scale $(SF)) $(if $(QUERIES),--queries $(QUERIES)) $(if $(RESUME),--resume)

bench-growth: setup ## what a change costs when the data is ten times as large
	@$(BIN)/python -m benchmarks.growth

bench-windows: setup ## windows, sessions, sliding frames and joins in time against Spark's own streaming
	@$(BIN)/python -m benchmarks.windows

bench-nexmark: setup flink ## Nexmark beside Flink; EVENTS=10000000, QUERIES=q3,q5 takes some, RESUME=1 goes on where a run was cut off
	@$(BIN)/python -m benchmarks.nexmark $(if $(EVENTS),--events $(EVENTS)) $(if $(QUERIES),--queries $(QUERIES)) $(if $(RESUME),--resume)

flink: .venv-flink/.ready ## Flink in an environment of its own, .venv-flink, about 850 MB; quick when nothing has changed
	@:

bench-rivals: setup .venv-rivals/.ready ## Penstock beside Python streaming libraries and Python on Spark, on three jobs
	@$(BIN)/python -m benchmarks.rivals

bench-latency: setup ## from an append to the visible change, at steady rates; SECONDS=300 each
	@$(BIN)/python -m benchmarks.latency $(if $(SECONDS),--seconds $(SECONDS))

bench-kafka: setup ## Spark reading a topic of Kafka, by our reader and by Spark's own connector
	@$(BIN)/python -m benchmarks.kafka

bench-stores: setup ## how many changed rows stores of views take in a second: PostgreSQL, Redis and SQLite
	@$(BIN)/python -m benchmarks.stores

bench-serve: setup ## look-ups over HTTP on one core, and 500 readers that follow a view's changes
	@$(BIN)/python -m benchmarks.serve

bench-scale: setup ## what a batch costs on a cluster of 1, 2 and 4 executors, and the model for larger ones
	@$(BIN)/python -m benchmarks.scale

cluster: $(READY) ## Spark's standalone cluster on loopback, a master at port 7077 and WORKERS=2, from PySpark's own jars
	@$(BIN)/python -m services.spark start $(or $(WORKERS),2)

cluster-stop: $(READY) ## end what `make cluster` has started
	@$(BIN)/python -m services.spark stop

kafka: $(READY) ## Apache Kafka on loopback, port 9092; NODES=3 are three nodes; its jars are fetched with Maven
	@$(BIN)/python -m services.kafka start $(or $(NODES),1)

kafka-stop: $(READY) ## end what `make kafka` has started; its records stay in .services
	@$(BIN)/python -m services.kafka stop

kafka-jars: setup ## what Spark needs to read Kafka, beside the kernel: the client is fetched with Maven, the reader built
	@$(BIN)/python -m services.kafka jars

rabbitmq: $(READY) ## RabbitMQ on loopback, port 5672; fetched from Debian, unpacked in .services
	@$(BIN)/python -m services.rabbitmq start

rabbitmq-stop: $(READY) ## end what `make rabbitmq` has started; its durable queues stay in .services
	@$(BIN)/python -m services.rabbitmq stop

postgres: $(READY) ## PostgreSQL on loopback, port 5432; Debian's, unpacked in .services unless it is installed
	@$(BIN)/python -m services.postgres start

postgres-stop: $(READY) ## end what `make postgres` has started; its data stays in .services
	@$(BIN)/python -m services.postgres stop

redis: $(READY) ## Redis on loopback, port 6379; Debian's, unpacked in .services unless it is installed
	@$(BIN)/python -m services.redis start

redis-stop: $(READY) ## end what `make redis` has started; its data stays in .services
	@$(BIN)/python -m services.redis stop

format: setup ## format the Python code and mend what ruff can mend
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

wheel: setup ## build the wheel into dist/
	@$(BIN)/python -m build --wheel --no-isolation

clean: ## remove what was built; .venv stays
	@rm -rf dist src/penstock/engine/kernel*.jar src/penstock/engine/kafka-clients.jar src/penstock/engine/kernel.jsa .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	@rm -rf .hypothesis artifacts spark-warehouse metastore_db derby.log
	@find src tests kernel benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

.venv-rivals/.ready: benchmarks/streams/requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null || { \
	  echo 'the libraries that Penstock is measured beside need Python 3.11 or 3.12' >&2; \
	  echo "  detail: $(PYTHON) is $$($(PYTHON) --version 2>/dev/null || echo missing)." >&2; \
	  echo '  hint:   Name another one: make bench-rivals PYTHON=python3.12' >&2; exit 1; }
	@test -x .venv-rivals/bin/python || $(PYTHON) -m venv .venv-rivals
	@echo 'installing the libraries that Penstock is measured beside'
	@.venv-rivals/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# The scripts themselves see whether there is anything to do.
kernel: $(READY)
	@$(BIN)/python kernel/build.py
	@$(BIN)/python -m penstock.engine.sharing

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo 'Python 3.11 or newer is needed' >&2; \
	  echo "  detail: $(PYTHON) is $$($(PYTHON) --version 2>/dev/null || echo missing)." >&2; \
	  echo '  hint:   Name another one: make PYTHON=python3.12' >&2; exit 1; }
	@$(PYTHON) kernel/build.py --java
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -c 'import pyspark' 2>/dev/null || echo 'installing PySpark, about 400 MB, the first time'
	@$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
	  > .venv/build-requires.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r .venv/build-requires.txt
	@echo 'installing penstock and its tools'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --editable '.[dev]'
	@touch $(READY)

# Its packages and ours do not go together: it wants a pyarrow and a py4j of its own.
.venv-flink/.ready: benchmarks/nexmark/flink/requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 9) <= sys.version_info < (3, 13))' 2>/dev/null || { \
	  echo 'Flink needs Python 3.9 to 3.12' >&2; \
	  echo "  detail: $(PYTHON) is $$($(PYTHON) --version 2>/dev/null || echo missing)." >&2; \
	  echo '  hint:   Name another one: make flink PYTHON=python3.11' >&2; exit 1; }
	@$(PYTHON) kernel/build.py --java
	@test -x .venv-flink/bin/python || $(PYTHON) -m venv .venv-flink
	@.venv-flink/bin/python -c 'import pyflink' 2>/dev/null || echo 'installing Flink, about 850 MB, the first time'
	@.venv-flink/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/nexmark/flink/requirements.txt
	@touch .venv-flink/.ready
