# `make train` learns a policy and evaluates it. `make test` runs lint, types and most tests, in minutes;
# `make test-long` the tests that are marked `long`. All make .venv first.
PYTHON ?= python3
TRAIN ?= experiment=hetero_numa_placer budget.minutes=5
RUN := outputs/$(shell date +%Y-%m-%d/%H-%M-%S)_trained
REQUIRED = .venv/bin/python -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; print(*$(1), sep='\n')"
# Compiles the simulator, so that two processes do not both do so.
COMPILED = .venv/bin/python -c "from benchmarks.simulator import measure_compilation; measure_compilation()" > /dev/null
# Tests are shared out evenly among two processes; whoever is done takes some of the other's.
IN_TWO = -n 2 --dist worksteal

.PHONY: train test test-long clean

train: .venv/installed
	.venv/bin/python train.py $(TRAIN) hydra.run.dir=$(RUN)
	.venv/bin/python evaluate.py policy=$(RUN)

test: .venv/installed-dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy env run agents evaluation report benchmarks train.py evaluate.py search_baseline.py
	$(COMPILED)
	.venv/bin/python -m pytest $(IN_TWO) --durations=25 -m "not long"

# Those of compiled code run a second time, with more examples drawn at random and with numba's bounds
# checks, which it leaves out.
test-long: .venv/installed-dev
	$(COMPILED)
	.venv/bin/python -m pytest $(IN_TWO) -m long
	NUMBA_BOUNDSCHECK=1 $(COMPILED)
	NUMBA_BOUNDSCHECK=1 .venv/bin/python -m pytest $(IN_TWO) --hypothesis-profile=long tests/env/sim \
		tests/env/tickets tests/agents/learned/test_compiled_policy.py

# The smallest evaluation and training compile the simulator, once, and show that all packages work.
.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(call REQUIRED,p['dependencies']) | .venv/bin/python -m pip install -q -c constraints.txt -r /dev/stdin
	rm -rf .venv/first_evaluation .venv/first_training
	.venv/bin/python evaluate.py policy=hetero_numa cluster=tiny workflow=tiny workload=tiny episodes=1 hydra.run.dir=.venv/first_evaluation > /dev/null
	.venv/bin/python train.py agents=placer cluster=tiny workflow=tiny workload=tiny held_out.episodes=2 budget.minutes=null budget.iterations=1 hydra.run.dir=.venv/first_training > /dev/null
	touch $@

.venv/installed-dev: .venv/installed
	$(call REQUIRED,p['optional-dependencies']['dev']) | .venv/bin/python -m pip install -q -c constraints.txt -r /dev/stdin
	touch $@

clean:
	rm -rf .venv
