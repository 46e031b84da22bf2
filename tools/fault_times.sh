#!/bin/sh
# Each kind of fault alone under hlat launch: what was named, and the time from the fault to the next step.
# fault_times.sh [RANKS ...] (1 2 4); prints a table in Markdown. Times are from events.jsonl: the launcher's last sight of progress to `ready`.
# WORDS: more words for hlat launch, such as "launch.hosts=a:1,b:1 launch.remote=ssh"; HLAT: the program; KINDS: only these.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
hlat=${HLAT:-$here/build/hlat}
work=$(mktemp -d "$PWD/fault_times.XXXXXX")
trap 'rm -rf "$work"' EXIT

words_of() { # words_of KIND RANK: what plants it
  case $1 in
    hang_start) echo "hang_start rank=$2 phase=data" ;;
    slow) echo "slow rank=$2 step=25 steps=20 factor=3" ;;
    spike) echo "spike step=25" ;;
    corrupt | disk_full) echo "$1 rank=$2 step=15" ;;
    *) echo "$1 rank=$2 step=25" ;;
  esac
}

echo "| ranks | fault | named as | rank | host | step | found after, s | fault to next step, s | restarts |"
echo "|---|---|---|---|---|---|---|---|---|"
[ $# -gt 0 ] || set -- 1 2 4
for ranks; do
  for kind in ${KINDS:-kill crash stop hang hang_start error nan spike lost bitflip_grad bitflip_weight corrupt disk_full slow host}; do
    [ "$ranks" = 1 ] && case $kind in lost | bitflip_*) continue ;; esac
    rm -rf "$work/run"
    # shellcheck disable=SC2086  # WORDS is a list
    "$hlat" launch --config "$here/configs/nano.yaml" run.dir="$work/run" launch.ranks="$ranks" device.threads=1 \
      parallel.tp=$([ "$ranks" = 4 ] && echo 2 || echo 1) train.steps=60 checkpoint.every=10 run.sample_lines=0 launch.start_hang_s=15 \
      parallel.health_every="$(case $kind in bitflip_*) echo 1 ;; *) echo 0 ;; esac)" loss.on_spike=rollback loss.window=16 launch.straggler_steps=8 \
      fault.inject="$(words_of "$kind" $((ranks - 1)))" ${WORDS:-} >"$work/out" 2>&1 || { tail -5 "$work/out"; continue; }
    python3 - "$work/run/events.jsonl" "$ranks" "$kind" <<'PY'
import json, sys, datetime
t = lambda s: datetime.datetime.fromisoformat(s.replace("Z", "+00:00")).timestamp()
path, ranks, kind = sys.argv[1:]
events = [json.loads(line) for line in open(path)]
restarts = sum(e["kind"] == "restart" for e in events)
fault = next((e for e in events if e["kind"] in ("fault", "straggler") and e.get("by") == "launch"), None)
if fault is None:
    told = next((e for e in events if e["kind"] in ("save_failed", "spike")), None)
    print(f"| {ranks} | {kind} | {'no fault: the run went on' if told is None else told['kind']} | | | | | | {restarts} |")
    sys.exit()
begin = t(fault.get("progressed_at", fault["time"]))
ready = next((t(e["time"]) for e in events if e["kind"] == "ready" and t(e["time"]) > begin), None)
print(f"| {ranks} | {kind} | {fault.get('cause', fault['kind'])} | {fault.get('rank', '')} | {fault.get('host', '')} | {fault['step']} "
      f"| {t(fault['time']) - begin:.1f} | {'' if ready is None else f'{ready - begin:.1f}'} | {restarts} |")
PY
  done
done
