#!/bin/sh
# A command under mpirun on hosts that are namespaces of this machine, one rank each, joined by a switch with links of one rate:
#   bench/slow_links.sh RANKS RATE COMMAND...        e.g. 8 200mbit build/hlat bench step --config FILE parallel.tp=8
# What communication costs where it, and not the machine's cores, is the limit. Needs root, iproute2 and Open MPI.
set -eu

ranks=$1 rate=$2
shift 2
work=$(mktemp -d)
switch=

end() {
  trap - EXIT
  for pid in $switch $(cat "$work"/host.* 2>/dev/null); do
    net=$(readlink "/proc/$pid/ns/net") && [ "$net" != "$(readlink /proc/$$/ns/net)" ] || continue # it never became a host
    for process in /proc/[0-9]*; do # daemons that mpirun left behind among them
      [ "$(readlink "$process/ns/net" 2>/dev/null)" != "$net" ] || kill -KILL "${process#/proc/}" 2>/dev/null || :
    done
  done
  rm -rf "$work"
}
trap end EXIT
trap 'exit 143' TERM INT HUP

# on PID COMMAND...: on the host of that process.
on() {
  pid=$1
  shift
  nsenter --target "$pid" --net --uts -- "$@"
}

# card PID NAME: its sending is held to the rate.
card() {
  on "$1" ip link set "$2" up
  on "$1" tc qdisc add dev "$2" root tbf rate "$rate" burst 256k latency 200ms
}

unshare --net sh -c 'ip link add switch type bridge && ip link set switch up && exec sleep 7200' &
switch=$!
i=1
while [ $i -le "$ranks" ]; do
  unshare --net --uts sh -c 'hostname "$0" && ip link set lo up && exec sleep 7200' "slow-$i" &
  echo $! >"$work/host.$i"
  echo "slow-$i slots=1" >>"$work/hosts"
  i=$((i + 1))
done
sleep 1
i=1
while [ $i -le "$ranks" ]; do
  host=$(cat "$work/host.$i")
  ip link add "port$i" netns "$switch" type veth peer name card netns "$host"
  on "$host" ip addr add "10.78.0.$i/24" dev card
  on "$switch" ip link set "port$i" master switch
  card "$host" card
  card "$switch" "port$i"
  i=$((i + 1))
done

# mpirun starts its daemons with this in place of ssh: agent HOST COMMAND...
cat >"$work/agent" <<AGENT
#!/bin/sh
host=\${1##*[.-]}
shift
exec nsenter --target \$(cat $work/host.\$host) --net --uts -- sh -c "cd '$PWD' && \$*"
AGENT
chmod +x "$work/agent"
# Names are addresses: nothing here asks a name server.
sed 's/slow-/10.78.0./' "$work/hosts" >"$work/hostfile"
export OMPI_MCA_plm_rsh_agent="$work/agent" OMPI_MCA_btl_tcp_if_include=10.78.0.0/24 OMPI_MCA_oob_tcp_if_include=10.78.0.0/24
on "$(cat "$work/host.1")" mpirun --allow-run-as-root --hostfile "$work/hostfile" -n "$ranks" --map-by node --bind-to none "$@"
