#!/bin/bash
# On the cluster of slurm.sh, in the working folder: slurm_preempt.sh HLAT STEPS
# Submits the batch scripts straight.sh and preempted.sh, jobs of two nodes on the run folders `straight` and `preempted`.
# - straight: runs through.
# - preempted: hlat check fails on its first node, n1, so that it is submitted again without it; then it is told by a signal to end, as
#   before a time limit; then it is queued again and finishes.
# Leaves what Slurm says of the last job in preempted.job.
set -eu
real=$1 steps=$2

# hlat, with a check that finds n1 broken.
cat >hlat <<HLAT
#!/bin/bash
if [ "\$1" = check ]; then
  [ "\$SLURMD_NODENAME" != n1 ] || [ ! -e break_n1 ] || { echo "a wrong matmul" >&2; exit 4; }
  exit 0
fi
exec "$real" "\$@"
HLAT
chmod +x hlat
export HLAT=$PWD/hlat

await() { # await WHAT COMMAND...: until it succeeds
  local what=$1 tries=0
  shift
  until "$@"; do
    tries=$((tries + 1))
    if [ $tries -gt 600 ]; then
      echo "$what: not in time" >&2
      squeue >&2
      tail -n 20 ./*.log >&2
      exit 1
    fi
    sleep 0.2
  done
}
no_job() { [ -z "$(squeue -h)" ]; }
steps_done() { [ "$(cat "$1/metrics.jsonl" 2>/dev/null | wc -l)" -ge "$2" ] || no_job; }

sbatch straight.sh
await "the straight run" no_job

touch break_n1
sbatch preempted.sh
await "a first part of the preempted run" steps_done preempted $((steps / 10))
job=$(squeue -h -o %i)
[ -n "$job" ] || { tail -n 20 preempted.log >&2; exit 1; }
scancel --batch --signal=USR1 "$job"
await "the end of the preempted run" no_job
scontrol show job "$job" >preempted.job
