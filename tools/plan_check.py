#!/usr/bin/env python3
"""Holds the planner's step times against real runs on this machine's cores.

  plan_check.py HLAT --config FILE --machine FILE --out FILE [--rounds N] [--steps N]

All predictions come first and are written to --out; then every layout is run in turns, --rounds times, and the median of its step times
is set beside the prediction. Ends with the spread of the measured times, the largest deviations and Spearman's rank correlation.
"""

import argparse
import json
import statistics
import subprocess
import sys

# name, ranks, keys. Layouts of one row share a model, a batch and its tokens, so their step times can be ranked.
LAYOUTS = [
    ("1 rank", 1, []),
    ("1 rank, selective", 1, ["train.recompute=selective"]),
    ("1 rank, full", 1, ["train.recompute=full"]),
    ("1 rank, micro-batch 4", 1, ["train.micro_batch=4"]),
    ("1 rank, 1 thread", 1, ["device.threads=1"]),
    ("1 rank, 1 thread, full", 1, ["device.threads=1", "train.recompute=full"]),
    ("pp 2, 1 micro-batch", 2, ["parallel.pp=2", "train.micro_batch=8"]),
    ("dp 2", 2, []),
    ("dp 2, full", 2, ["train.recompute=full"]),
    ("dp 2, no ZeRO-1", 2, ["parallel.zero1=false"]),
    ("dp 2, micro-batch 4", 2, ["train.micro_batch=4"]),
    ("tp 2", 2, ["parallel.tp=2"]),
    ("tp 2, sequence", 2, ["parallel.tp=2", "parallel.sequence=true"]),
    ("tp 2, full", 2, ["parallel.tp=2", "train.recompute=full"]),
    ("pp 2", 2, ["parallel.pp=2"]),
    ("pp 2, chunks 2", 2, ["parallel.pp=2", "parallel.chunks=2"]),
    ("pp 2, full", 2, ["parallel.pp=2", "train.recompute=full"]),
    ("pp 2, micro-batch 4", 2, ["parallel.pp=2", "train.micro_batch=4"]),
    ("dp 4", 4, []),
    ("tp 2 x dp 2", 4, ["parallel.tp=2"]),
    ("pp 2 x dp 2", 4, ["parallel.pp=2"]),
    ("tp 2 x pp 2", 4, ["parallel.tp=2", "parallel.pp=2"]),
    ("pp 4", 4, ["parallel.pp=4"]),
    ("pp 4, full", 4, ["parallel.pp=4", "train.recompute=full"]),
    ("dp 8", 8, []),
    ("tp 2 x pp 2 x dp 2", 8, ["parallel.tp=2", "parallel.pp=2"]),
    ("tp 2 x dp 4, full", 8, ["parallel.tp=2", "train.recompute=full"]),
]
ONE_RANK_THREADS = 2  # a single rank has both cores; several have one thread each


def threads(ranks, keys):
    if any(key.startswith("device.threads=") for key in keys):
        return []
    return [f"device.threads={ONE_RANK_THREADS if ranks == 1 else 1}"]


def answer(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr or done.stdout}")
    return json.loads(done.stdout[done.stdout.index("{"):])


def predicted(args, ranks, keys):
    command = [args.hlat, "plan", "--config", args.config, "--machine", args.machine, "--ranks", str(ranks), "--json"]
    return answer(command + keys + threads(ranks, keys))["time"]["step_s"]


def measured(args, ranks, keys):
    run = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-q", "-n", str(ranks)] if ranks > 1 else []
    command = run + [args.hlat, "bench", "step", "--config", args.config, "--steps", str(args.steps), "--json"]
    return answer(command + keys + threads(ranks, keys))["step_s"]


def ranks_of(values):
    order = sorted(range(len(values)), key=lambda i: values[i])
    place = [0] * len(values)
    for position, i in enumerate(order):
        place[i] = position
    return place


def spearman(a, b):
    x, y = ranks_of(a), ranks_of(b)
    n = len(a)
    return 1 - 6 * sum((p - q) ** 2 for p, q in zip(x, y)) / (n * (n * n - 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hlat")
    parser.add_argument("--config", required=True)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3)
    args = parser.parse_args()
    rows = [{"name": n, "ranks": r, "keys": k, "predicted": predicted(args, r, k), "runs": []} for n, r, k in LAYOUTS]
    with open(args.out, "w") as out:
        json.dump(rows, out, indent=1)
    for _ in range(args.rounds):
        for row in rows:
            row["runs"].append(measured(args, row["ranks"], row["keys"]))
    print("| layout | ranks | predicted step, s | measured, s (median; least to most) | predicted / measured |\n|---|---|---|---|---|")
    for row in rows:
        row["measured"] = statistics.median(row["runs"])
        print(f"| {row['name']} | {row['ranks']} | {row['predicted']:.3f} | {row['measured']:.3f} ({min(row['runs']):.3f} to "
              f"{max(row['runs']):.3f}) | {row['predicted'] / row['measured']:.3f} |")
    with open(args.out, "w") as out:
        json.dump(rows, out, indent=1)
    times, plans = [r["measured"] for r in rows], [r["predicted"] for r in rows]
    chosen = min(rows, key=lambda r: r["predicted"])
    print(f"\n{len(rows)} layouts, measured times over a factor of {max(times) / min(times):.2f}; Spearman {spearman(plans, times):.3f}; "
          f"the predicted best ({chosen['name']}) is at {chosen['measured'] / min(times) - 1:+.1%} of the measured best")


if __name__ == "__main__":
    main()
