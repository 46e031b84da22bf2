#!/usr/bin/env bash
# The measurements on one GPU that bench/results/stability and fp8 report, in parts, each of which may be cut off and repeated:
#   TEXT=FOLDER TOKENIZER=FILE bench/one_gpu.sh HLAT OUT SECONDS PART...
# TEXT has *_train_* and *_valid_* files of text at any depth. Nothing is started after SECONDS; a repeated command goes on with what is
# missing, also on another machine that was given OUT, with the same words. What is worth keeping is small: OUT.tar.gz has the tables, metrics
# and events. Parts: monitor fp8_rate fp8_1b fp8_keys choices beta2 (studies/*.yaml), speed, machine (about 5 minutes).
# KEYS="a=b c=d" changes all studies. To be started in the root of the tree.
set -uo pipefail
hlat=$1 out=${2%/} seconds=$3
shift 3
mkdir -p "$out"
read -ra keys <<<"${KEYS-}"
began=$SECONDS

# A study knows its runs by their keys, paths of data among them: links give these the same names on every machine.
: "${TEXT:?a folder of text}" "${TOKENIZER:?a file}"
ln -sfn "$(realpath "$TEXT")" "$out/text"
ln -sfn "$(dirname "$(realpath "$TOKENIZER")")" "$out/tokenizer"
data=("data.tokenizer=$out/tokenizer/$(basename "$(realpath "$TOKENIZER")")" "data.sources[0].path=$out/text/**/*_train_*"
  "data.sources[0].validation=$out/text/**/*_valid_*")

left() { echo $((seconds - (SECONDS - began))); }

study() {
  local rest
  rest=$(left)
  ((rest > 0)) || { echo "no time is left"; return; }
  "$hlat" study "studies/$1.yaml" --out "$out/$1" --limit "$rest" "${data[@]}" ${keys[0]+"${keys[@]}"}
}

# keep FILE COMMAND...: what it prints, in FILE when it has ended well; nothing where FILE is there.
keep() {
  local file=$1
  shift
  [[ ! -s $file ]] || return 0
  (($(left) > 0)) || { echo "$file: no time is left"; return 1; }
  "$@" >"$file.part" && mv "$file.part" "$file" && cat "$file"
}

step() {  # of hlat-7b or llama-1b, as in the tables of speed
  keep "$out/step-$1-${*: -1}.json" "$hlat" bench step --config "configs/$1.yaml" train.recompute=none "${@:2}" --json
}

speed() {
  local bad=0
  for policy in fp8 mixed; do
    step hlat-7b parallel.tp=1 parallel.dp=auto train.global_batch=4 train.loss_chunk=4096 "train.precision=$policy" || bad=1
    step llama-1b train.loss_chunk=8192 train.seq_len=4096 train.global_batch=8 train.micro_batch=8 "train.precision=$policy" || bad=1
  done
  return $bad
}

part() {
  case $1 in
    monitor)
      keep "$out/monitor.txt" "$hlat" bench monitor --config configs/llama-1b.yaml train.micro_batch=8 train.global_batch=8 \
        train.loss_chunk=8192 --steps 60 ;;
    machine)
      [[ ! -e $out/machine.yaml ]] && (($(left) > 0)) || return 0
      "$hlat" bench machine --config configs/hlat-7b.yaml parallel.tp=1 train.precision=fp8 --out "$out/machine.yaml" --seconds 120 ;;
    speed) speed ;;
    *) study "$1" ;;
  esac
}

for name in "$@"; do
  echo "== $name"
  part "$name" 2>&1 | tee -a "$out/$name.log"
  echo "== $name: exit code ${PIPESTATUS[0]}, $((SECONDS - began)) s"
done
tar -C "$out" --exclude=checkpoints --exclude=./text --exclude=./tokenizer --exclude='events.out.*' --exclude=report.html -czf "$out.tar.gz" .
