#!/bin/bash
# Runs a command on a Slurm cluster made for it: slurm.sh COMMAND...   in an empty working folder
# The cluster is real, with daemons of its own: munged, slurmctld, and a slurmd for each of the nodes n1, n2 and n3, which are this
# machine with a name and a /dev/shm of their own. All live in namespaces (processes, network) that end with the command, so nothing
# stays behind but files, in `slurm` of the working folder. Exit code: the command's, 77 and a reason where this cannot be.
set -eu

refuse() {
  echo "slurm: $*" >&2
  exit 77
}

inside=${HLAT_SLURM_INSIDE:-}
if [ -z "$inside" ]; then
  for program in slurmctld slurmd srun sbatch munged; do
    command -v "$program" >/dev/null || refuse "$program is not installed"
  done
  [ "$(id -u)" -eq 0 ] || refuse "slurmd must be root"
  unshare --net --mount --pid --fork true 2>/dev/null || refuse "namespaces are not permitted here"
  HLAT_SLURM_INSIDE=$PWD/slurm exec unshare --net --mount --pid --fork --kill-child --mount-proc "$0" "$@"
fi

# Process 1 of the namespace: what ends with it has ended.
# The nodes are names of one address; a network with nothing but a loopback would be none to them.
host=$(hostname)
ip link set lo up
{ ip link add hlat0 type veth peer name hlat1 && ip addr add 10.78.0.1/24 dev hlat0 && ip link set hlat0 up && ip link set hlat1 up; } ||
  refuse "virtual network cards are not permitted here"
mkdir -p "$inside/state"
printf '127.0.0.1 localhost\n10.78.0.1 %s n1 n2 n3\n' "$host" >"$inside/hosts"
mount --bind "$inside/hosts" /etc/hosts
head -c 128 /dev/urandom >"$inside/munge.key"
chmod 600 "$inside/munge.key"

cat >"$inside/slurm.conf" <<CONF
ClusterName=hlat
SlurmctldHost=$host(10.78.0.1)
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
# A job that is queued again waits for cred_expire.
AuthInfo=socket=$inside/munge.sock,cred_expire=5
StateSaveLocation=$inside/state
SlurmdSpoolDir=$inside/%n
SlurmctldPidFile=$inside/slurmctld.pid
SlurmdPidFile=$inside/%n.pid
SlurmctldLogFile=$inside/slurmctld.log
SlurmdLogFile=$inside/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
NodeName=n[1-3] NodeAddr=10.78.0.1 Port=[17411-17413] CPUs=2
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$inside/slurm.conf

munged --foreground --force --socket="$inside/munge.sock" --key-file="$inside/munge.key" --pid-file="$inside/munged.pid" \
  --log-file="$inside/munged.log" --seed-file="$inside/munge.seed" >"$inside/munged.out" 2>&1 &
slurmctld -D -c >"$inside/slurmctld.out" 2>&1 &
for node in n1 n2 n3; do
  # Nodes of one machine need folders of their own for PMIx, which each finds beside its slurm.conf.
  mkdir -p "$inside/conf_$node" "$inside/pmix_$node"
  cp "$inside/slurm.conf" "$inside/conf_$node"
  echo "PMIxCliTmpDirBase=$inside/pmix_$node" >"$inside/conf_$node/mpi.conf"
  SLURM_CONF=$inside/conf_$node/slurm.conf unshare --mount --uts --ipc sh -c \
    'hostname "$0" && mount -t tmpfs tmpfs /dev/shm && exec slurmd -D -N "$0"' "$node" >"$inside/$node.out" 2>&1 &
done
tries=0
until [ "$(timeout 5 sinfo -h -N -t idle -o %n 2>/dev/null | wc -l)" -eq 3 ]; do
  tries=$((tries + 1))
  if [ $tries -gt 100 ]; then
    cat "$inside"/*.out >&2
    echo "slurm: the nodes do not come up" >&2
    exit 1
  fi
  sleep 0.2
done

status=0
"$@" || status=$?
scancel --full --signal=KILL --user=root 2>/dev/null || :
exit $status
