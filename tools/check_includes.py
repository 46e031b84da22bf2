#!/usr/bin/env python3
"""Checks who includes whom.

The modules of src/ form a DAG: each may include itself and the layers below it; data and the backends have rules of their own.
Quoted includes are written from src/ (in tests/ also from tests/), angle brackets are for other people's headers, no two files
include each other in a circle, CUDA headers stay in backend/cuda and comm/nccl, MPI's in comm/mpi_comm.cc, and only runtime
names concrete backends and transports.

  check_includes.py [ROOT]       exit code 1 and one line per problem
  check_includes.py --self-test  the checker finds each kind of problem in a tree made to have it
"""

import pathlib
import re
import sys
import tempfile

# From the bottom up. Modules of one layer do not know each other.
LAYERS = [
    ["base"],
    ["flight", "trace"],
    ["config", "tensor"],
    ["ops", "comm"],
    ["backend/cpu", "backend/cuda", "backend/null", "parallel"],
    ["param"],
    ["nn", "optim", "checkpoint"],
    ["model", "health", "task", "sandbox", "fault"],
    ["eval", "record"],
    ["alarm", "report"],
    ["train", "supervise", "study"],
    ["plan"],
    ["runtime"],
    ["bench", "burnin", "selfcheck"],
    ["cli"],
]
# data stands beside the layers: on base, config and tensor, below those who read batches.
DATA_BELOW = {"base", "config", "tensor"}
DATA_READERS = {"task", "train", "eval", "plan", "runtime", "bench", "selfcheck", "cli"}
# Concrete backends and their users; tests may use all. The dry run is the real step on null ops, so plan names that one.
BACKEND_USERS = {"backend/cpu": {"runtime"}, "backend/cuda": {"runtime"}, "backend/null": {"runtime", "plan", "bench", "burnin", "selfcheck"}}
# Transports by their header, and their users likewise; all else of comm is for everybody above it.
TRANSPORT_USERS = {
    "comm/mpi_comm.h": {"runtime"},
    "comm/null_comm.h": {"runtime", "plan"},
    "comm/self_comm.h": {"runtime", "plan"},
    "comm/staged_comm.h": {"runtime"},
    "comm/nccl/nccl_comm.h": {"runtime"},
}

CUDA_HEADER = re.compile(r"^(cuda|cublas|cudnn|curand|cusparse|cusolver|cufft|nvrtc|nvToolsExt|nvtx|nccl|nvml|cub/|cute/|cutlass/|thrust/|cooperative_groups)")
CUDA_PLACES = ("src/backend/cuda/", "src/comm/nccl", "tests/backend/cuda/", "tests/comm/nccl", "tests/dist/nccl")
MPI_HEADER = re.compile(r"^(mpi\.h|mpi-ext\.h|openmpi/)")
MPI_PLACE = "src/comm/mpi_comm.cc"
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
SUFFIXES = {".h", ".cc", ".cu", ".cuh", ".inc"}


def allowed_modules():
    """module -> the modules it may include, itself among them"""
    allowed, below = {}, set()
    for layer in LAYERS:
        for module in layer:
            allowed[module] = {m for m in below if module in BACKEND_USERS.get(m, {module})} | {module}
            if module in DATA_READERS:
                allowed[module].add("data")
        below |= set(layer)
    allowed["data"] = DATA_BELOW | {"data"}
    return allowed


def module_of(path):
    """the module of a path below src/: its first folder, for backends the first two"""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "backend" and len(parts) > 2 else parts[0]


def check(root):
    root = pathlib.Path(root)
    allowed = allowed_modules()
    files = {
        str(p.relative_to(root)): p.read_text(encoding="utf-8")
        for top in ("src", "tests", "bench")
        for p in sorted((root / top).rglob("*"))
        if p.suffix in SUFFIXES
    }
    problems, graph = [], {}
    for name, text in files.items():
        top = name.split("/")[0]
        module = module_of(name[len("src/") :]) if top == "src" else None
        if module and module not in allowed:
            problems.append(f"{name}: {module} is not a module of the tree; add it to tools/check_includes.py with its place")
            continue
        graph[name] = []
        for match in INCLUDE.finditer(text):
            quoted, angled = match.groups()
            where = f"{name}:{text.count(chr(10), 0, match.start(1 if quoted else 2)) + 1}"
            target = quoted or angled
            if CUDA_HEADER.match(target) and not name.startswith(CUDA_PLACES) and f"src/{target}" not in files:
                problems.append(f"{where}: CUDA header {target} outside backend/cuda and comm/nccl")
                continue
            if MPI_HEADER.match(target) and name != MPI_PLACE:
                problems.append(f"{where}: MPI header {target} outside comm/mpi_comm.cc")
                continue
            if angled:
                if f"src/{angled}" in files:
                    problems.append(f'{where}: <{angled}> is ours: write "{angled}"')
                continue
            bases = {"src": ["src"], "tests": ["src", "tests"], "bench": ["src", "tests"]}[top]
            found = next((f"{base}/{quoted}" for base in bases if f"{base}/{quoted}" in files), None)
            if found is None:
                problems.append(f'{where}: "{quoted}" is not a path below {" or ".join(b + "/" for b in bases)}')
                continue
            graph[name].append(found)
            if not found.startswith("src/"):
                continue
            other = module_of(quoted)
            if module and other not in allowed[module]:
                problems.append(f"{where}: {module} must not include {other} ({quoted})")
            if quoted in TRANSPORT_USERS and top != "tests" and module not in TRANSPORT_USERS[quoted] | {"comm"}:
                problems.append(f"{where}: {module or top} must not name {quoted}")
            if top == "bench" and other in BACKEND_USERS:
                problems.append(f"{where}: only runtime and tests name {other} ({quoted})")
    return problems + cycles(graph)


def cycles(graph):
    """each circle of includes once, as the chain of its files"""
    done, found = set(), []

    def visit(name, chain):
        if name in chain:
            found.append("include circle: " + " -> ".join(chain[chain.index(name) :] + [name]))
        elif name not in done:
            for target in graph.get(name, []):
                visit(target, chain + [name])
            done.add(name)

    for name in graph:
        visit(name, [])
    return found


GOOD_TREE = {
    "src/base/error.h": "#include <string>\n",
    "src/config/config.h": '#include "base/error.h"\n',
    "src/tensor/tensor.h": '#include "base/error.h"\n',
    "src/ops/ops.h": '#include "tensor/tensor.h"\n',
    "src/comm/comm.h": '#include "tensor/tensor.h"\n',
    "src/comm/mpi_comm.h": '#include "comm/comm.h"\n',
    "src/comm/mpi_comm.cc": '#include <mpi.h>\n#include "comm/mpi_comm.h"\n',
    "src/comm/null_comm.h": '#include "comm/comm.h"\n',
    "src/comm/staged_comm.h": '#include "comm/comm.h"\n',
    "src/backend/cpu/ops.h": '#include "ops/ops.h"\n',
    "src/backend/cuda/ops.h": '#include <cuda_runtime.h>\n#include "ops/ops.h"\n',
    "src/backend/null/ops.h": '#include "ops/ops.h"\n',
    "src/param/store.h": '#include "ops/ops.h"\n',
    "src/nn/layer.h": '#include "param/store.h"\n',
    "src/optim/adamw.h": '#include "param/store.h"\n',
    "src/model/llama.h": '#include "nn/layer.h"\n',
    "src/data/loader.h": '#include "config/config.h"\n#include "tensor/tensor.h"\n',
    "src/train/step.h": '#include "model/llama.h"\n#include "optim/adamw.h"\n#include "data/loader.h"\n',
    "src/plan/plan.h": '#include "train/step.h"\n#include "backend/null/ops.h"\n#include "comm/null_comm.h"\n',
    "src/runtime/runtime.h": '#include "backend/cpu/ops.h"\n#include "comm/mpi_comm.h"\n#include "comm/staged_comm.h"\n#include "plan/plan.h"\n#include "train/step.h"\n',
    "src/cli/main.cc": '#include "plan/plan.h"\n#include "runtime/runtime.h"\n',
    "tests/support/cases.h": '#include "backend/cpu/ops.h"\n#include "comm/staged_comm.h"\n',
    "tests/unit/ops_test.cc": '#include "support/cases.h"\n#include "ops/ops.h"\n',
    "bench/ops.cc": '#include "runtime/runtime.h"\n',
}
# what to add to the good tree, and the words of the complaint
BAD_FILES = [
    ("src/base/bad.h", '#include "tensor/tensor.h"\n', "base must not include tensor"),
    ("src/config/bad.h", '#include "tensor/tensor.h"\n', "config must not include tensor"),
    ("src/nn/bad.h", '#include "optim/adamw.h"\n', "nn must not include optim"),
    ("src/model/bad.h", '#include "backend/cpu/ops.h"\n', "model must not include backend/cpu"),
    ("src/train/bad.h", '#include "backend/null/ops.h"\n', "train must not include backend/null"),
    ("src/backend/null/bad.h", '#include "backend/cpu/ops.h"\n', "backend/null must not include backend/cpu"),
    ("src/plan/bad.h", '#include "runtime/runtime.h"\n', "plan must not include runtime"),
    ("src/runtime/bad.h", '#include "cli/cmd.h"\n', '"cli/cmd.h" is not a path'),
    ("src/cli/bad.cc", '#include "backend/cpu/ops.h"\n', "cli must not include backend/cpu"),
    ("src/data/bad.h", '#include "ops/ops.h"\n', "data must not include ops"),
    ("src/model/bad.h", '#include "data/loader.h"\n', "model must not include data"),
    ("src/model/bad.h", '#include "../nn/layer.h"\n', '"../nn/layer.h" is not a path'),
    ("src/nn/bad.h", '#include "layer.h"\n', '"layer.h" is not a path'),
    ("src/nn/bad.h", "#include <param/store.h>\n", "<param/store.h> is ours"),
    ("src/nn/bad.h", "  #  include <cuda_runtime.h>\n", "CUDA header cuda_runtime.h outside"),
    ("src/comm/mpi_comm.h", "#include <mpi.h>\n", "MPI header mpi.h outside comm/mpi_comm.cc"),
    ("tests/unit/bad_test.cc", "#include <mpi.h>\n", "MPI header mpi.h outside comm/mpi_comm.cc"),
    ("src/train/bad.h", '#include "comm/null_comm.h"\n', "train must not name comm/null_comm.h"),
    ("src/plan/bad.h", '#include "comm/staged_comm.h"\n', "plan must not name comm/staged_comm.h"),
    ("src/cli/bad.cc", '#include "comm/mpi_comm.h"\n', "cli must not name comm/mpi_comm.h"),
    ("bench/bad.cc", '#include "comm/staged_comm.h"\n', "bench must not name comm/staged_comm.h"),
    ("src/nn/bad.h", '#include "nn/bad.h"\n', "include circle: src/nn/bad.h -> src/nn/bad.h"),
    ("src/base/error.h", '#include "base/two.h"\n', '"base/two.h" is not a path'),
    ("src/misc/bad.h", "\n", "misc is not a module"),
    ("bench/bad.cc", '#include "backend/cpu/ops.h"\n', "only runtime and tests name backend/cpu"),
]


def self_test():
    def problems_of(tree):
        with tempfile.TemporaryDirectory() as root:
            for name, text in tree.items():
                path = pathlib.Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return check(root)

    failures = [f"good tree: {p}" for p in problems_of(GOOD_TREE)]
    for name, text, words in BAD_FILES:
        got = problems_of({**GOOD_TREE, name: text})
        if not any(words in p for p in got):
            failures.append(f"{name} with {text!r}: expected '{words}', got {got}")
    circle = {"src/nn/a.h": '#include "nn/b.h"\n', "src/nn/b.h": '#include "nn/c.h"\n', "src/nn/c.h": '#include "nn/a.h"\n'}
    got = problems_of({**GOOD_TREE, **circle})
    if len(got) != 1 or "nn/a.h -> src/nn/b.h -> src/nn/c.h" not in got[0]:
        failures.append(f"circle of three: got {got}")
    return failures


def main(arguments):
    problems = self_test() if arguments == ["--self-test"] else check(arguments[0] if arguments else ".")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
