#!/usr/bin/env bash
# Kills a run at seeded random instants, starts it again until it is finished, and holds it against an uninterrupted one, bit by bit:
#   tools/kill_runs.sh HLAT FOLDER KILLS [words of hlat train ...]
# Every second kill is a SIGTERM. Before the third start the cache of matmul algorithms is removed: a resume takes those of its checkpoint.
# Prints one line per kill, and at the end what differs. Exit code 1 when anything does.
set -euo pipefail
hlat=$1 folder=$2 kills=$3
shift 3
RANDOM=${SEED:-1}
export XDG_CACHE_HOME=$folder/cache
mkdir -p "$folder"

"$hlat" train "$@" run.dir="$folder/whole" run.sample_lines=0 --fresh >"$folder/whole.log" 2>&1
whole_s=$(python3 -c "import json; print(sum(json.loads(l)['step_s'] for l in open('$folder/whole/metrics.jsonl')))")
last=$(python3 -c "import json; print([json.loads(l)['step'] for l in open('$folder/whole/metrics.jsonl')][-1])")

done_kills=0 starts=0
while :; do
  starts=$((starts + 1))
  if [ "$starts" -eq 3 ]; then rm -rf "$XDG_CACHE_HOME"; fi
  "$hlat" train "$@" run.dir="$folder/killed" run.sample_lines=0 >"$folder/killed.$starts.log" 2>&1 &
  pid=$!
  if [ "$done_kills" -lt "$kills" ]; then
    after=$(python3 -c "print(1.0 + $RANDOM / 32768 * (3.0 + 0.5 * $whole_s))")
    sleep "$after"
    signal=$([ $((done_kills % 2)) -eq 0 ] && echo KILL || echo TERM)
    kill "-$signal" "$pid" 2>/dev/null || true
  fi
  code=0
  wait "$pid" || code=$?
  at=$(tail -1 "$folder/killed/metrics.jsonl" 2>/dev/null | python3 -c "import json,sys; t = sys.stdin.read(); print(json.loads(t)['step'] if t else 0)" 2>/dev/null || echo "?")
  kept=$(ls "$folder/killed/checkpoints" 2>/dev/null | tr '\n' ' ')
  echo "start $starts: ended with $code at step $at of $last; checkpoints: $kept"
  if [ "$code" -eq 0 ]; then break; fi
  done_kills=$((done_kills + 1))
done
"$hlat" ckpt diff --exit-code "$folder/whole" "$folder/killed" --step "$last" | tail -3
python3 - "$folder" <<'P'
import json, sys
def losses(run):
    lines = [json.loads(l) for l in open(f"{sys.argv[1]}/{run}/metrics.jsonl")]
    assert [l["step"] for l in lines] == list(range(1, len(lines) + 1)), "every step once"
    return [(l["loss"], l["grad_norm"], l["param_norm"]) for l in lines]
whole, killed = losses("whole"), losses("killed")
assert whole == killed, "losses differ"
print(f"all {len(whole)} losses and norms are equal bit by bit, after the kills above")
P
