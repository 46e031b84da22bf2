#!/usr/bin/env bash
# Checkpoints of the size of HLAT-7B on one GPU: the bf16_sr state (37.7 GiB) written, verified and loaded; two copies of the weights alone
# (12.6 GiB) diffed, averaged and exported. Needs 60 GB of disk:   bench/checkpoint_7b.sh HLAT FOLDER
# Prints seconds and the largest resident memory of each command.
set -euo pipefail
hlat=$1 folder=$2
keys=(--config configs/hlat-7b.yaml parallel.tp=1 parallel.dp=1 parallel.sequence=false data.embedded=true train.seq_len=1024
  train.global_batch=2 train.micro_batch=1 train.recompute=none optim.warmup=0 run.sample_lines=0 run.tensorboard=false)

measured() {
  python3 - "$@" <<'P'
import resource, subprocess, sys, time
start = time.time()
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
print("\n".join(done.stdout.strip().splitlines()[-6:]))
print(f"== {' '.join(sys.argv[2:5])}: {time.time() - start:.1f} s, resident at most {peak:.2f} GiB, exit code {done.returncode}", flush=True)
sys.exit(done.returncode)
P
}

measured "$hlat" train "${keys[@]}" run.dir="$folder/state" train.steps=1 checkpoint.every=0 --fresh
grep -E "saved|save" "$folder/state/log.txt" | tail -2
measured "$hlat" ckpt verify "$folder/state"
measured "$hlat" train "${keys[@]}" run.dir="$folder/state" train.steps=2 checkpoint.every=0 checkpoint.at_end=false
grep -E "read " "$folder/state/log.txt" | tail -1
rm -rf "$folder/state"

measured "$hlat" train "${keys[@]}" run.dir="$folder/weights" train.steps=2 checkpoint.every=0 checkpoint.at_end=false \
  checkpoint.weights_every_tokens=2048 optim.lr=1e-3 --fresh
a=$folder/weights/weights/step_1 b=$folder/weights/weights/step_2
measured "$hlat" ckpt diff "$a" "$b"
measured "$hlat" ckpt average "$a" "$b" --out "$folder/average"
measured "$hlat" ckpt export "$folder/average" "$folder/exported"
ls -l "$folder/exported" | head -12
rm -rf "$folder"
