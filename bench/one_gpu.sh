#!/usr/bin/env bash
# The measurements on one GPU that bench/results/stability and fp8 report, in parts, each of which may be cut off and repeated:
#   TEXT=FOLDER TOKENIZER=FILE bench/one_gpu.sh HLAT OUT SECONDS PART...
# TEXT has *_train_* and *_valid_* files of text at any depth. No study run is started after SECONDS; a repeated command goes on with what is
# missing, also on another machine that was given OUT. What is worth keeping is small: OUT.tar.gz has the tables, metrics and events.
# Parts: monitor fp8_rate fp8_1b fp8_keys choices beta2 (studies/*.yaml), speed, machine (about 5 minutes). KEYS="a=b c=d" changes all studies.
set -uo pipefail
hlat=$1 out=$2 seconds=$3
shift 3
mkdir -p "$out"
read -ra keys <<<"${KEYS-}"
began=$SECONDS

study() {
  local left=$((seconds - (SECONDS - began)))
  ((left > 0)) || { echo "== $1: no time is left"; return; }
  "$hlat" study "studies/$1.yaml" --out "$out/$1" --limit "$left" "data.tokenizer=$TOKENIZER" "data.sources[0].path=$TEXT/**/*_train_*" \
    "data.sources[0].validation=$TEXT/**/*_valid_*" ${keys[0]+"${keys[@]}"}
}

step() {  # of hlat-7b or llama-1b, as in the tables of speed
  "$hlat" bench step --config "configs/$1.yaml" train.recompute=none "${@:2}" --json >"$out/step-$1-${*: -1}.json"
}

part() {
  case $1 in
    monitor) "$hlat" bench monitor --config configs/llama-1b.yaml train.micro_batch=8 train.global_batch=8 train.loss_chunk=8192 --steps 60 ;;
    machine) "$hlat" bench machine --config configs/hlat-7b.yaml parallel.tp=1 train.precision=fp8 --out "$out/machine.yaml" --seconds 120 ;;
    speed)
      for policy in fp8 mixed; do
        step hlat-7b parallel.tp=1 parallel.dp=auto train.global_batch=4 train.loss_chunk=4096 "train.precision=$policy"
        step llama-1b train.loss_chunk=8192 train.seq_len=4096 train.global_batch=8 train.micro_batch=8 "train.precision=$policy"
      done ;;
    *) study "$1" ;;
  esac
}

for name in "$@"; do
  echo "== $name"
  part "$name" 2>&1 | tee "$out/$name.log"
  echo "== $name: exit code ${PIPESTATUS[0]}, $((SECONDS - began)) s"
done
tar -C "$out" --exclude=checkpoints --exclude='events.out.*' --exclude=report.html -czf "$out.tar.gz" .
