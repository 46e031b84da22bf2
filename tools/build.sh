#!/bin/sh
# Configures and builds one preset: build.sh PRESET TARGET. On a terminal shows ninja's one line, elsewhere only problems.
set -eu

preset=$1
target=$2
dir=build
[ "$preset" = release ] || dir=build-$preset
[ -e "$dir/build.ninja" ] || echo "building in $dir ..."

# A build folder that came from another place (a copied tree) cannot be used as it is.
fresh=
if [ -e "$dir/CMakeCache.txt" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$(pwd -P)" "$dir/CMakeCache.txt"; then fresh=--fresh; fi

# Runs "$@" with its output in a log that is shown when it fails.
quietly() {
  log=$1
  shift
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
  fi
}

# Configured every time (it is quick): a library installed since the last time is then seen.
mkdir -p "$dir"
quietly "$dir/configure.log" cmake --preset "$preset" $fresh
jobs=${JOBS:-$(nproc)}
if [ -t 1 ]; then exec cmake --build "$dir" --target "$target" -- -j "$jobs"; fi
quietly "$dir/build.log" cmake --build "$dir" --target "$target" -- --quiet -j "$jobs"
