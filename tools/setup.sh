#!/bin/sh
# Makes sure the machine has what the build needs: setup.sh GROUP...   (groups: build test long lint fuzz; none means build test lint)
# Looks for the commands and headers themselves. What is missing is installed with apt-get; without apt-get, or when that
# fails, the missing things are listed and the exit code is 1. Says nothing when nothing is missing.
set -eu

# One line per need: group, Debian package, how to find it, purpose.
needs() {
  cat <<'LIST'
build|g++|command g++|C++20 compiler, GCC 12 or newer
build|cmake|command cmake|build generator, 3.25 or newer
build|ninja-build|command ninja|build runner
build|libdnnl-dev|header oneapi/dnnl/dnnl.hpp|oneDNN: matrix products
build|libyaml-cpp-dev|header yaml-cpp/yaml.h|yaml-cpp: config files
build|nlohmann-json3-dev|header nlohmann/json.hpp|nlohmann-json: JSON
build|libcli11-dev|header CLI/CLI.hpp|CLI11: command line
build|libfmt-dev|header fmt/format.h|fmt: text formatting
build|libspdlog-dev|header spdlog/spdlog.h|spdlog: logging
build|libopenmpi-dev|command mpicc|Open MPI: ranks as processes
build|openmpi-bin|command mpirun|Open MPI: its launcher
build|libxxhash-dev|header xxhash.h|xxHash: checksums of checkpoints
build|pkg-config|command pkg-config|finds libraries
build|libsimdjson-dev|header simdjson.h|simdjson: JSON documents of the data
build|libzstd-dev|header zstd.h|zstd: compressed data
build|zlib1g-dev|header zlib.h|zlib: compressed data
build|libpcre2-dev|header pcre2.h|PCRE2: patterns of tokenizers
build|libsentencepiece-dev|header sentencepiece_processor.h|SentencePiece: tokenizers that are not BPE
test|python3|command python3|Python 3: check scripts, the programs of HumanEval
test|iproute2|command ip|ip: two hosts as namespaces of one
test|libgtest-dev|header gtest/gtest.h|GoogleTest
test|libbenchmark-dev|header benchmark/benchmark.h|Google Benchmark
long|slurm-wlm|command slurmctld|Slurm: a cluster of this machine
long|munge|command munged|MUNGE: what Slurm's daemons know each other by
long|chromium|command chromium|Chromium: opens a report, drags, clicks
fuzz|clang-14|command clang++-14|clang: libFuzzer
fuzz|libomp-14-dev|clang_header omp.h|OpenMP for clang
lint|clang-format|command clang-format-14 clang-format|source formatter
lint|clang-tidy|command clang-tidy-14 clang-tidy|static checks
lint|libomp-dev|clang_header omp.h|the OpenMP header as clang-tidy sees it
LIST
}

# found KIND NAME...: one of the names is there.
found() {
  kind=$1
  shift
  for name; do
    case $kind in
      command) command -v "$name" >/dev/null 2>&1 && return 0 ;;
      header) printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$name" | "${CXX:-g++}" -E -x c++ - >/dev/null 2>&1 && return 0 ;;
      clang_header) # beside clang's own resources, where g++ does not look
        for file in /usr/lib/llvm-*/lib/clang/*/include/"$name" /usr/lib*/clang/*/include/"$name" /usr/include/"$name"; do
          [ -e "$file" ] && return 0
        done ;;
    esac
  done
  return 1
}

# The needs of the wanted groups that this machine does not meet, as package|purpose.
missing() {
  needs | while IFS='|' read -r group package how purpose; do
    case " $groups " in *" $group "*) ;; *) continue ;; esac
    # shellcheck disable=SC2086  # how to find it is a list of words
    found $how || echo "$package|$purpose"
  done
}

apt() {
  sudo=
  if [ "$(id -u)" -ne 0 ]; then
    sudo=sudo
    [ -t 0 ] || sudo="sudo -n" # nobody is there to type a password
  fi
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@"
}

# A package that the archive does not have keeps none of the others away.
one_by_one() {
  failed=0
  for package; do apt install -y --no-install-recommends "$package" || failed=1; done
  return $failed
}

install() {
  command -v apt-get >/dev/null 2>&1 || return 1
  [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null 2>&1 || return 1
  packages=$(printf '%s\n' "$need" | cut -d'|' -f1 | tr '\n' ' ')
  # wanted, not needed
  command -v ccache >/dev/null 2>&1 || packages="$packages ccache"
  python3 -c 'import venv, ensurepip' >/dev/null 2>&1 || packages="$packages python3-venv"
  echo "setup: installing $packages" >&2
  log=$(mktemp)
  # shellcheck disable=SC2086  # a list of package names
  if { apt update && { apt install -y --no-install-recommends $packages || one_by_one $packages; }; } >"$log" 2>&1; then
    rm -f "$log"
  else
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
}

groups="$*"
: "${groups:=build test lint}"
need=$(missing)
[ -n "$need" ] || exit 0
if install; then
  need=$(missing)
  [ -n "$need" ] || exit 0
fi
echo "setup: install what is missing, by its name in your system, and run again (Debian package: purpose):" >&2
printf '%s\n' "$need" | while IFS='|' read -r package purpose; do printf '  %-20s %s\n' "$package" "$purpose" >&2; done
exit 1
