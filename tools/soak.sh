#!/bin/sh
# A run on 4 ranks (tp 2 x dp 2) with a random fault every 30 s on average, out of all kinds that recover on the same mesh, against the run
# that nothing happens to: soak.sh STEPS [SEED [key=value ...]]. Prints faults by kind, goodput and its split, whether all tensors of the
# last checkpoint are identical, and what is left behind. Exit code 1 when tensors differ or something is left.
set -eu

steps=$1
seed=${2:-1}
if [ $# -ge 2 ]; then shift 2; else shift; fi
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
hlat=$here/build/hlat

run() { # run NAME WORDS...
  name=$1
  shift
  "$hlat" launch --config "$here/configs/nano.yaml" run.dir="$work/$name" launch.ranks=4 parallel.tp=2 device.threads=1 \
    train.steps="$steps" checkpoint.every=50 run.sample_lines=0 launch.restarts=100000 "$@" >"$work/$name.out" 2>&1
}

left() { find /dev/shm -maxdepth 1 -name 'hlat-*' | wc -l; }
before=$(left)
run calm "$@"
echo "calm run: $(grep -c . "$work/calm/metrics.jsonl") steps"
run soak fault.every_s="${EVERY_S:-30}" fault.seed="$seed" "$@" || { tail -20 "$work/soak.out"; exit 1; }
echo "faults planted:"
sed -n 's/^.*"fault" *: *"\([a-z_]*\).*$/\1/p' "$work/soak/faults.jsonl" | sort | uniq -c
grep '^hlat launch:' "$work/soak.out" | tail -2
"$hlat" ckpt diff "$work/soak" "$work/calm" | grep -i tensor | head -3
status=0
"$hlat" ckpt diff --exit-code "$work/soak" "$work/calm" >/dev/null || status=1
if [ "$(left)" -gt "$before" ] || pgrep -f "$work" >/dev/null; then
  echo "left behind: $(left) ring folders, processes: $(pgrep -f "$work" | wc -l)"
  status=1
else
  echo "nothing is left behind: no process, no shared memory"
fi
exit $status
