#!/bin/sh
# Style and structure checks: lint.sh STEP...   Steps: format includes symbols tidy; reformat rewrites the sources.
# Runs every step asked for, then fails if any did. symbols and tidy look at a release build.
set -eu

build=build
jobs=${JOBS:-$(nproc)}

# The version the tree is formatted with comes first: others differ in details.
tool() { command -v "$1-14" || command -v "$1"; }

sources() { find "$@" \( -name '*.cc' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) | sort; }

format() { sources src tests bench | xargs -n 16 -P "$jobs" "$(tool clang-format)" --dry-run --Werror; }

reformat() { sources src tests bench | xargs "$(tool clang-format)" -i; }

includes() { python3 tools/check_includes.py --self-test && python3 tools/check_includes.py; }

symbols() { tools/check_kernel_symbols.sh "$build"; }

# clang-tidy over src/, as the build compiles it: files of a folder together (cmake/unity.cmake), of which it reports as it does of headers.
# Not over kernels: it would see them for one instruction set only. Not over what this build leaves out.
tidy() {
  mkdir -p "$build/tidy"
  sed -n "s|^ *\"file\": \"$(pwd -P)/\(.*\.cc\)\",*$|\1|p" "$build/compile_commands.json" | grep -v /kernels/ | sort -u | while read -r f; do
    case $f in src/* | "$build"/unity/*) if [ -n "$(sources_of "$f")" ]; then echo "$f"; fi ;; esac
  done | xargs -P "$jobs" -n 1 "$0" --tidy-file
}

# The files of src/ that a file stands for: those it includes when it was made to include them, or itself.
sources_of() {
  case $1 in src/*) echo "$1" ;; *) sed -n 's/^#include "\([^"]*\)".*/src\/\1/p' "$1" | while read -r f; do if [ -e "$f" ]; then echo "$f"; fi; done ;; esac
}

# A file that passed is left alone until it, what it stands for, a header or the checks change; build/tidy keeps the time of the pass.
tidy_file() {
  stamp=$build/tidy/$(echo "$1" | tr / +)
  if [ -e "$stamp" ]; then
    # shellcheck disable=SC2046  # a list of files
    changed=$(find "$1" $(sources_of "$1") .clang-tidy "$0" -newer "$stamp" && find src -name '*.h' -newer "$stamp")
    if [ -z "$changed" ]; then return; fi
  fi
  touch "$stamp.new"
  # -w: the compiler's warnings are the compiler's work
  if text=$("$(tool clang-tidy)" -p "$build" --quiet --extra-arg=-w "$1" 2>&1); then
    mv "$stamp.new" "$stamp"
  else
    printf '%s\n' "$text" | grep -v 'generated\.$\|^Suppressed \|^Use -header-filter'
    return 1
  fi
}

if [ "${1:-}" = --tidy-file ]; then
  tidy_file "$2"
  exit
fi
failed=
for step; do
  set +e # errexit inside the step, not on it
  (set -e; "$step")
  rc=$?
  set -e
  if [ $rc -eq 0 ]; then echo "lint $step: ok"; else failed="$failed $step"; fi
done
if [ -n "$failed" ]; then
  echo "lint failed:$failed" >&2
  exit 1
fi
