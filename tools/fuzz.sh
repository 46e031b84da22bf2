#!/bin/sh
# Runs the fuzz targets one after the other: fuzz.sh [NAME...]   (none means all) FUZZ_SECONDS each, from the committed seeds.
# What a run learns stays in build-fuzz/corpus/NAME; an input that breaks a target stays in build-fuzz/NAME-crash-*.
set -eu

seconds=${FUZZ_SECONDS:-60}
names="$*"
[ -n "$names" ] || names=$(cd tests/fuzz && for f in fuzz_*.cc; do f=${f#fuzz_}; echo "${f%.cc}"; done)
failed=
for name in $names; do
  mkdir -p "build-fuzz/corpus/$name"
  log=build-fuzz/$name.log
  if "build-fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="build-fuzz/$name-" "build-fuzz/corpus/$name" "tests/fuzz/seeds/$name" >"$log" 2>&1; then
    echo "fuzz $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs in $seconds s: ok"
  else
    tail -n 30 "$log" >&2
    failed="$failed $name"
  fi
done
if [ -n "$failed" ]; then
  echo "fuzz failed:$failed" >&2
  exit 1
fi
