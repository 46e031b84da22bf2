#!/bin/sh
# Each kind of fault alone under hlat launch, on 1, 2 and 4 ranks: what was named, and the time from the fault to the next step.
# fault_times.sh [RANKS ...]; prints a table in Markdown. Times are from events.jsonl: the launcher's last sight of progress to `ready`.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "| ranks | fault | named as | rank | found after, s | fault to next step, s | restarts |"
echo "|---|---|---|---|---|---|---|"
[ $# -gt 0 ] || set -- 1 2 4
for ranks; do
  for kind in kill crash stop hang error nan lost corrupt disk_full host; do
    [ "$ranks" = 1 ] && case $kind in lost) continue ;; esac
    victim=$((ranks - 1))
    rm -rf "$work/run"
    "$here/build/hlat" launch --config "$here/configs/nano.yaml" run.dir="$work/run" launch.ranks="$ranks" device.threads=1 \
      parallel.tp=$([ "$ranks" = 4 ] && echo 2 || echo 1) train.steps=60 checkpoint.every=10 run.sample_lines=0 \
      fault.inject="$kind rank=$victim step=25" >"$work/out" 2>&1 || { tail -5 "$work/out"; continue; }
    python3 - "$work/run/events.jsonl" "$ranks" "$kind" <<'PY'
import json, sys, datetime
t = lambda s: datetime.datetime.fromisoformat(s.replace("Z", "+00:00")).timestamp()
events = [json.loads(line) for line in open(sys.argv[1])]
fault = next((e for e in events if e["kind"] == "fault" and e.get("by") == "launch"), None)
restarts = sum(e["kind"] == "restart" for e in events)
if fault is None:
    print(f"| {sys.argv[2]} | {sys.argv[3]} | none: the run went on | | | | {restarts} |")
else:
    begin = t(fault["progressed_at"])
    ready = next(t(e["time"]) for e in events if e["kind"] == "ready" and t(e["time"]) > begin)
    print(f"| {sys.argv[2]} | {sys.argv[3]} | {fault['cause']} | {fault['rank']} | {t(fault['time']) - begin:.1f} | {ready - begin:.1f} | {restarts} |")
PY
  done
done
