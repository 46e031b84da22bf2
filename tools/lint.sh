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

# clang-tidy over src/. Not over kernels: it would see them for one instruction set only. Not over what this build leaves out.
tidy() {
  mkdir -p "$build/tidy"
  find src -name '*.cc' ! -path '*/kernels/*' | sort | while read -r f; do grep -q "\"file\": .*/$f\"" "$build/compile_commands.json" && echo "$f"; done |
    xargs -P "$jobs" -n 1 "$0" --tidy-file
}

# A file that passed is left alone until it, a header or the checks change; build/tidy keeps the time of the pass.
tidy_file() {
  stamp=$build/tidy/$(echo "$1" | tr / +)
  if [ -e "$stamp" ] && [ -z "$(find src .clang-tidy "$0" \( -name '*.h' -o -path "$1" -o ! -path 'src*' \) -newer "$stamp" -type f)" ]; then return; fi
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
