# Thin front of the CMake presets. Every target installs what it needs first (scripts/install-deps).
.PHONY: build install package python wheel demo quick paper-figures test test-release test-sanitizers test-statistical test-tokenizers test-docs test-python-torch test-cuda bench format deps clean

# Where nvcc comes from: auto (the path), pip (PyPI's, into build/cuda), off.
CUDA ?= auto

build: deps
	cuda=$$(scripts/cuda-toolkit $(CUDA)) && cmake --preset release $$cuda >/dev/null
	cmake --build --preset release --target deeptail deeptail_cxx deeptail_shared

# make install PREFIX=/opt/deeptail, with DESTDIR for packagers; make package: a .deb in build/.
PREFIX ?= /usr/local
install: build
	cmake --install build --prefix $(PREFIX)

package: build
	@scripts/install-deps package
	cd build && cpack -G DEB

# The Python package in build/python, from Debian's packages alone, and its tests. PYTHON: the interpreter for them.
PYTHON ?= /usr/bin/python3
python: deps
	@scripts/install-deps python
	cmake --preset release >/dev/null
	cmake --build --preset release --target deeptail deeptail_shared
	cmake --install build --component python --prefix build/python >/dev/null
	PYTHON=$(PYTHON) tests/python/run build

# The same as one wheel for every Python and every system with glibc 2.34 or later, in build/wheel; needs pip and PyPI.
wheel: deps
	scripts/python-wheel build/wheel

demo: build
	scripts/demo

# A small benchmark and its report.
quick: build
	build/deeptail bench run suites/quick.toml --out runs/quick
	build/deeptail report runs/quick --out report.html

# Every figure and table of docs/paper.md, from the runs in docs/results.
paper-figures: build
	scripts/paper-figures build/deeptail

test: test-release test-sanitizers

test-release: deps
	@scripts/install-deps test
	cuda=$$(scripts/cuda-toolkit $(CUDA:auto=try)) && cmake --preset release $$cuda >/dev/null
	cmake --build --preset release
	ctest --preset release -LE statistical -j3

test-sanitizers: deps
	cmake --preset tsan >/dev/null & cmake --preset asan >/dev/null && wait $$!
	cmake --build --preset asan
	ctest --preset asan -LE statistical -j4
	cmake --build --preset tsan --target test_parallel
	ctest --preset tsan -LE statistical -j2

# Slow runs whose answer is a distribution, not a number.
test-statistical: build
	cmake --build --preset release --target statistical_tests
	ctest --preset release -C statistical -L statistical

# 10,000 strings for each kind of tokenizer, against HuggingFace's library (from PyPI): a minute.
test-tokenizers: build
	cmake --build --preset release --target test_readers
	scripts/compare-tokenizers

# Every command of README.md and docs/, and what they state that it prints: minutes.
test-docs: build
	node tests/docs/run.mjs build/deeptail . --times

# deeptail.torch, the examples and the notebooks with PyTorch and transformers, from PyPI (gigabytes) or PYTHON's own: minutes.
test-python-torch: build
	cmake --build --preset release --target deeptail_shared
	tests/python/run_torch build

# On a machine with an NVIDIA GPU and nvcc.
test-cuda: deps
	cmake --preset release -DDEEPTAIL_CUDA=ON >/dev/null
	cmake --build --preset release --target deeptail cuda_truth_check cuda_tokensplit_check cuda_families_check cuda_ga_amls_check
	build/cuda_truth_check --cpu 12 --compare 18 --time 24
	build/cuda_tokensplit_check
	build/cuda_families_check --fixtures tests/data/families --large 1
	build/cuda_ga_amls_check --full 1

bench: deps
	scripts/install-deps bench
	cmake --preset bench >/dev/null
	cmake --build --preset bench
	bench/run

format:
	git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format -i

deps:
	@scripts/install-deps

clean:
	rm -rf build build-*
