#!/usr/bin/env python3
"""Plants bugs in real training runs of a small model and tells what saw each of them, after how many steps, and what the loss showed.

  planted_bugs.py HLAT --out DIR [--steps N] [--mpirun "mpirun --bind-to none"] [--threads N] [--again]

A healthy run with three seeds gives the spread of the loss; one healthy run on each layout must raise nothing. Each bug is trained twice:
as a run is by default, until something ends it, and with health checks off, to the last step, for its loss. `hlat check --model` is asked
about each as well. Run folders stay in DIR, and are used again with --again. The table goes to stdout, as markdown.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

MODEL = ["model.layers=4", "model.hidden=64", "model.heads=4", "model.kv_heads=2", "model.ffn=512", "model.vocab=512", "train.seq_len=64",
         "train.global_batch=16", "train.micro_batch=4", "optim.lr=4e-3", "optim.warmup=20", "run.sample_lines=0", "checkpoint.every=0",
         "checkpoint.at_end=false", "parallel.bucket_mb=1", "device.backend=cpu"]
WINDOW = 20  # steps that a loss is the mean of
SEEDS = (1, 2, 3)
LAYOUTS = {"1 rank": (1, []), "dp 2": (2, ["parallel.dp=2"]), "tp 2": (2, ["parallel.tp=2"]), "pp 2": (2, ["parallel.pp=2"]),
           "1 rank, recompute": (1, ["train.recompute=full"])}
BUGS = [
    ("a mask that leaks one token", "leak", "1 rank"),
    ("an all-reduce that drops one rank's share in one bucket", "drop_share rank=1", "dp 2"),
    ("a scaled gradient on one tp rank", "scale_grad rank=1", "tp 2"),
    ("the same, of one tensor that no ranks share", "scale_grad rank=1 tensor=layers.1.mlp.down", "tp 2"),
    ("a wrong RoPE on one stage", "rope rank=1", "pp 2"),
    ("an optimizer that forgets bias correction", "bias_correction", "1 rank"),
    ("a data source repeated", "repeat", "1 rank"),
    ("logits that are 8 times as large", "logits", "1 rank"),
    ("a block that is computed again with other norms", "recompute", "1 rank, recompute"),
]


class Runs:
    def __init__(self, args):
        self.args = args
        self.out = pathlib.Path(args.out).resolve()
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / "planted.yaml").write_text("{}\n")

    def command(self, words, ranks):
        start = []
        if ranks > 1:
            start = shlex.split(self.args.mpirun) + (["--allow-run-as-root"] if os.geteuid() == 0 else []) + ["-n", str(ranks)]
        return start + [str(pathlib.Path(self.args.hlat).resolve())] + words

    def start(self, words, ranks):
        began = time.monotonic()
        done = subprocess.run(self.command(words, ranks), capture_output=True, text=True, cwd=self.out)
        return {"code": done.returncode, "out": done.stdout, "err": done.stderr, "seconds": time.monotonic() - began}

    def keys(self, layout, seed, more):
        return (MODEL + [f"train.steps={self.args.steps}", f"device.threads={self.args.threads}", f"run.seed={seed}", f"data.seed={seed}"]
                + LAYOUTS[layout][1] + more)

    def train(self, name, layout, seed=1, more=()):
        """{losses by step, seconds by step, events, code, err} of a run, which is made unless it is there and --again says so"""
        folder, said = self.out / name, self.out / (name + ".json")
        if not (self.args.again and said.exists()):
            print(f"{name} ...", file=sys.stderr, flush=True)
            words = ["train", "--config", "planted.yaml", "--fresh", f"run.dir={name}"] + self.keys(layout, seed, list(more))
            said.write_text(json.dumps(self.start(words, LAYOUTS[layout][0])))
        run = json.loads(said.read_text())
        lines = [json.loads(x) for x in (folder / "metrics.jsonl").read_text().splitlines()]
        run["losses"] = {x["step"]: x["loss"] for x in lines}
        run["step_s"] = {x["step"]: x["step_s"] for x in lines}
        run["events"] = [json.loads(x) for x in (folder / "events.jsonl").read_text().splitlines()]
        return run

    def check(self, name, layout, fault):
        words = ["check", "--model", "--json", "--config", "planted.yaml", f"run.dir={name}"] + self.keys(layout, 1, [f"fault.inject={fault}"])
        done = self.start(words, LAYOUTS[layout][0])
        checks = json.loads(done["out"])["checks"]
        return [c["name"] for c in checks if c["state"] == "failed"], sum(c["seconds"] for c in checks)


def loss_at(run, step):
    """the mean of the steps up to this one"""
    steps = [s for s in range(max(1, step - WINDOW + 1), step + 1) if s in run["losses"]]
    return sum(run["losses"][s] for s in steps) / len(steps)


# What a message says, and the check that says so.
ENDS = [("summed wrongly", "sums of gradients over dp"), ("table of RoPE", "table of RoPE"), ("gradients", "gradients of peers"),
        ("weights", "weights of peers")]


def seen_in(run):
    """[(step, by what)] in a run, the first first: alarms, and the check that ended it"""
    found = [(e["step"], f"alarm `{e['rule']}`") for e in run["events"] if e["kind"] == "alarm"]
    ends = re.findall(r"step (\d+): (.*)", run["err"]) if run["code"] != 0 else []
    if ends:
        step, words = ends[-1]
        found.append((int(step), "health check of " + next((name for word, name in ENDS if word in words), words)))
    elif run["code"] != 0:
        found.append((max(run["losses"], default=0), f"exit code {run['code']}"))
    return sorted(found)


def spread_at(healthy, step):
    values = [loss_at(run, step) for run in healthy]
    return max(values) - min(values)


def row_of(runs, healthy, number, bug):
    words, fault, layout = bug
    watched = runs.train(f"bug{number}_watched", layout, more=[f"fault.inject={fault}"])
    whole = runs.train(f"bug{number}_whole", layout, more=[f"fault.inject={fault}", "parallel.health_every=0"])
    failed, seconds = runs.check(f"bug{number}_check", layout, fault)
    seen, end = seen_in(watched), runs.args.steps
    gap = lambda step: f"{loss_at(whole, step) - loss_at(healthy[0], step):+.3f} ({spread_at(healthy, step):.3f})"
    if seen:
        step = seen[0][0]
        took = sum(s for at, s in watched["step_s"].items() if at <= step)
        first = {by: at for at, by in reversed(seen)}  # of each
        what = "; ".join(f"{by} at {at}" for by, at in sorted(first.items(), key=lambda x: x[1]))
        told = [what, str(step), f"{took:.1f}", gap(step)]
    else:
        told = ["nothing", "", "", ""]
    checked = f"{', '.join(f'`{c}`' for c in failed) or 'nothing'}, {seconds:.1f} s"
    return [words, f"`{fault}`", layout] + told + [gap(end), checked]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hlat")
    parser.add_argument("--out", required=True)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--mpirun", default="mpirun --oversubscribe --bind-to none")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--again", action="store_true", help="use the runs that are in DIR")
    runs = Runs(parser.parse_args())
    healthy = [runs.train(f"healthy_seed{seed}", "1 rank", seed) for seed in SEEDS]
    layouts = {layout: runs.train("healthy_" + re.sub(r"\W", "", layout), layout) for layout in LAYOUTS if layout != "1 rank"}
    quiet = all(not seen_in(run) for run in healthy + list(layouts.values()))
    apart = max(abs(loss_at(run, s) - loss_at(healthy[0], s)) for run in layouts.values() for s in run["losses"])
    end = runs.args.steps
    print(f"Healthy: seeds {', '.join(map(str, SEEDS))} end at {', '.join(f'{loss_at(run, end):.4f}' for run in healthy)} "
          f"(mean of {WINDOW} steps); the layouts' losses are within {apart:.1g} of one rank's. "
          f"Alarms and failed checks in these {len(healthy) + len(layouts)} runs: {'none' if quiet else 'SOME'}.\n")
    head = ["bug", "planted as", "layout", "seen in the run by", "first at step", "s", "loss minus healthy there (spread of seeds)",
            f"at step {end}", "self-check"]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for number, bug in enumerate(BUGS):
        print("| " + " | ".join(row_of(runs, healthy, number, bug)) + " |", flush=True)
    return 0 if quiet else 1


if __name__ == "__main__":
    sys.exit(main())
