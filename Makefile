# The two commands of a fresh machine are `make run` and `make test`; both install what they need (tools/setup.sh).
# This file only strings the steps together: the build itself is CMakeLists.txt, its variants are CMakePresets.json.

CONFIG ?= configs/nano.yaml
ARGS   ?=
JOBS   ?= $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
export JOBS
# Many tests wait, for processes, disks or limits of time: twice as many as cores keep them busy.
CTEST   = ctest --no-tests=error -j $(shell expr 2 \* $(JOBS))

.DEFAULT_GOAL := build
.NOTPARALLEL:
.PHONY: build run test test-gpu test-asan test-gcc13 test-tier-long test-long fuzz lint tidy format bench clean help

build: ## build build/hlat
	@tools/setup.sh build
	@tools/setup_cuda.sh
	@tools/setup_arrow.sh
	@tools/setup_plot.sh
	@tools/build.sh release hlat

run: build ## build, then train the embedded example anew; CONFIG=FILE and ARGS="key=value ..." change it
	@build/hlat train --config $(CONFIG) --fresh $(ARGS)

test: ## build everything and run the fast tests
	@tools/setup.sh build test
	@tools/setup_cuda.sh
	@tools/setup_arrow.sh
	@tools/setup_plot.sh
	@tools/build.sh release all
	@$(CTEST) --preset release --output-log build/ctest.log

test-gpu: ## build, then run the tests of the cuda backend on this machine's GPU
	@tools/setup.sh build test
	@tools/setup_cuda.sh
	@tools/setup_arrow.sh
	@tools/setup_plot.sh
	@tools/build.sh release all
	@build/tests/unit_tests --gtest_brief=1 --gtest_filter='*cuda*:Cuda.*'
	@build/tests/cuda_lib_tests --gtest_brief=1
	@if [ -x build/tests/dist_tests ]; then build/tests/dist_tests --gtest_brief=1 --gtest_filter='cuda/*'; fi
	@ctest --test-dir build --no-tests=ignore --output-on-failure -R '^dist.nccl$$'

test-asan: ## unit tests with address and undefined-behaviour sanitizers
	@tools/setup.sh build test
	@tools/setup_arrow.sh
	@tools/setup_plot.sh
	@tools/build.sh asan unit_tests
	@tools/check_kernel_symbols.sh build-asan
	@$(CTEST) --preset asan --output-log build-asan/ctest.log

test-gcc13: # a second compiler, where the machine has it
	@if command -v g++-13 >/dev/null 2>&1; then \
	  tools/build.sh gcc13 all && $(CTEST) --preset gcc13 --output-log build-gcc13/ctest.log; \
	else echo "g++-13 is not on this machine: skipped"; fi

test-tier-long: # soak, fuzz and clusters: tests/long
	@tools/setup.sh build test
	@tools/setup.sh long || echo "the tests that need them are skipped"
	@tools/setup_cuda.sh
	@tools/setup_arrow.sh
	@tools/setup_plot.sh
	@tools/setup_k8s.sh
	@tools/build.sh release all
	@ctest --no-tests=ignore -j $(JOBS) --preset long --output-log build/ctest-long.log

test-long: tidy test-asan test-gcc13 test-tier-long ## sanitizers, clang-tidy, second compiler, longer tests

fuzz: ## fuzz the readers of data, tokenizer and checkpoint files, FUZZ_SECONDS (60) each
	@tools/setup.sh build fuzz
	@tools/setup_arrow.sh
	@tools/setup_plot.sh
	@tools/build.sh fuzz fuzz_targets
	@tools/fuzz.sh

lint: ## format, clang-tidy, include rule, kernel symbols
	@tools/setup.sh build test lint
	@tools/build.sh release all
	@tools/lint.sh format includes symbols tidy

tidy: # clang-tidy alone
	@tools/setup.sh build test lint
	@tools/build.sh release all
	@tools/lint.sh tidy

format: ## rewrite the sources in the style of .clang-format
	@tools/setup.sh lint
	@tools/lint.sh reformat

bench: ## measure this machine: matmul rate, and every op of the llama-134m step
	@tools/setup.sh build test
	@tools/setup_cuda.sh
	@tools/setup_arrow.sh
	@tools/setup_plot.sh
	@tools/build.sh release all
	@build/hlat bench ops --config configs/llama-134m.yaml $(ARGS)
	@if [ -x build/hlat_bench ]; then build/hlat_bench; fi

clean: ## remove all build folders
	@rm -rf build build-asan build-tsan build-gcc13 build-cuda build-fuzz

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | while IFS='|' read -r t d; do printf '%-18s %s\n' "$$t" "$$d"; done
