# Two commands do everything on a fresh machine: `make run` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
PORT   ?= 8501
BIN    := $(VENV)/bin
# one worker per core; each test process computes with one thread
WORKERS ?= auto

.PHONY: run test test-slow test-study test-demo test-soak test-gpu test-all lint format web docs try-wheel container-steps clean

run: $(VENV)/.installed
	$(BIN)/streamlit run app.py --server.address 127.0.0.1 --server.port $(PORT)

# compiled once, not by each of the many processes that tests start
PYTEST = $(BIN)/python -m compileall -q src tools; OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test test-slow test-study test-demo test-soak test-gpu test-all: export PYTHONDONTWRITEBYTECODE =

test: $(VENV)/.installed-test
	$(PYTEST) -m "not slow"

test-slow: $(VENV)/.installed-test
	$(PYTEST) -m "slow and not soak"

# the study: its programs, and its pages against its results
test-study: $(VENV)/.installed-test
	$(PYTEST) -m "not soak" study/tests

test-soak: $(VENV)/.installed-test
	$(PYTEST) -m soak tests study/tests tools/demo/tests

# how the demo was made: generators and trainings
test-demo: $(VENV)/.installed-test
	$(PYTEST) -m "not soak" tools/demo/tests

# what a CUDA or MPS device computes, against the processor; skips where there is none
test-gpu: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m gpu tests/gpu

test-all: $(VENV)/.installed-test
	$(PYTEST)

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy src

format: $(VENV)/.installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/.installed: requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14) and "headviz needs Python 3.11 to 3.14; this is " + sys.version.split()[0] + ". Name another: make PYTHON=python3.12 $@")'
	test -x $(BIN)/python -a -f $(VENV)/pyvenv.cfg || $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps -e .
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --disable-pip-version-check -r requirements.txt -e ".[test]"
	touch $@

# the page that needs no installation, into build/web/; npm downloads ONNX Runtime Web
web: $(VENV)/.installed-test
	$(BIN)/python web/build.py

# the site, into site/, with that page: strict, and nothing is asked from outside
docs: web
	$(BIN)/mkdocs build --strict --quiet

# what a user does, from the wheel, in an environment of its own outside the checkout
try-wheel:
	$(PYTHON) tools/try_wheel.py

# the image, built and tried; where none can be built, the Dockerfile's own steps, with the packages that are here
container-steps: $(VENV)/.installed-test
	$(BIN)/python tools/container_steps.py --reuse

clean:
	rm -rf $(VENV) build dist site src/*.egg-info .pytest_cache .mypy_cache .ruff_cache
