#!/usr/bin/env python3
"""Many small files beside one file of the same text: time to open the data cold (no index) and warm, resident memory, and rate of the loader.

    python3 bench/many_files.py --hlat build/hlat --files 100000 --work /tmp/many_files

Makes the stories with `hlat data sample`, one story a file. Opening is timed with `hlat data inspect --rows 0 --tokens 1`, the rate is that
of `hlat bench data`. Prints one line for each layout; --json prints one object.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import time

CONFIG = """
run: {{dir: {work}/run}}
model: {{layers: 2, hidden: 64, heads: 4, ffn: 128, vocab: 2048}}
train: {{steps: 10, seq_len: 256, global_batch: 16, micro_batch: 4}}
data:
  tokenizer: {work}/sample/tokenizer.json
  sources:
    - {{name: stories, path: "{path}"}}
"""


def run(command):
    """Seconds, seconds of CPU, peak resident MiB and stdout of a command that must succeed."""
    begin = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed")
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, out


def make_corpora(hlat, work, files):
    """One folder with a file a story and one with all stories in one file."""
    subprocess.run([hlat, "data", "sample", "--out", work / "sample", "--documents", str(files)], check=True, stdout=subprocess.DEVNULL)
    lines = (work / "sample" / "stories.jsonl").read_text().splitlines(keepends=True)
    for name in ("one", "many"):
        (work / name).mkdir()
    (work / "one" / "all.jsonl").write_text("".join(lines))
    for number, line in enumerate(lines):
        (work / "many" / f"{number:06d}.jsonl").write_text(line)


def measure(hlat, work, name, seconds):
    config = work / f"{name}.yaml"
    config.write_text(CONFIG.format(work=work, path=f"{work}/{name}/*.jsonl"))
    shutil.rmtree(work / name / ".hlat", ignore_errors=True)
    inspect = [hlat, "data", "inspect", "--config", config, "--rows", "0", "--tokens", "1"]
    inspect = [str(word) for word in inspect]
    result = {}
    for start in ("cold", "warm"):
        result[start + "_s"], result[start + "_cpu_s"], result[start + "_mib"], _ = run(inspect)
    rate = json.loads(run([str(hlat), "bench", "data", "--config", str(config), "--seconds", str(seconds), "--json"])[3])
    result["loader_tokens_per_s"] = [line["loader_tokens_per_s"] for line in rate["threads"]]
    result["index_files"] = len(list((work / name / ".hlat").iterdir()))
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hlat", type=pathlib.Path, default=pathlib.Path("build/hlat"))
    parser.add_argument("--files", type=int, default=100000)
    parser.add_argument("--work", type=pathlib.Path, required=True, help="a folder for the files; kept when it is there already")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if not (args.work / "many").exists():
        args.work.mkdir(parents=True, exist_ok=True)
        make_corpora(args.hlat, args.work, args.files)
    results = {name: measure(args.hlat, args.work, name, args.seconds) for name in ("one", "many")}
    if args.json:
        print(json.dumps(results, indent=2))
        return
    for name, r in results.items():
        rates = ", ".join(f"{x / 1e6:.2f}M" for x in r["loader_tokens_per_s"])
        print(f"{name:5} cold {r['cold_s']:.2f} s (CPU {r['cold_cpu_s']:.2f}) {r['cold_mib']:.0f} MiB, "
              f"warm {r['warm_s']:.2f} s (CPU {r['warm_cpu_s']:.2f}) {r['warm_mib']:.0f} MiB, "
              f"loader {rates} tokens/s with 1, 2, ... threads, {r['index_files']} index files")


if __name__ == "__main__":
    main()
