#!/bin/sh
# Runs a command on the first of two hosts that are namespaces of this machine: two_hosts.sh FOLDER... -- COMMAND...
# Each host has a network, a host name, System V IPC, a /dev/shm and a /tmp of its own. What they have in common is a pair of virtual
# network cards (hlat0, 10.77.0.1 and 10.77.0.2) and what a cluster would share: the working folder and those named. mpirun
# finds both hosts through its environment and starts daemons on the other by `agent`, which stands for ssh.
# Leaves in the working folder: one.pid and two.pid (a process that is on that host as long as the command runs), `sent` (bytes that the
# first host's card has sent). Exit code: the command's, 77 and a reason where namespaces are not permitted.
set -eu

work=$PWD
folders=
while [ "$1" != -- ]; do
  folders="$folders $1"
  shift
done
shift

refuse() {
  echo "two hosts: $*" >&2
  exit 77
}

on() { # on PID COMMAND...: on the host of that process, in the working folder
  pid=$1
  shift
  nsenter --target "$pid" --net --uts --ipc --mount -- sh -c 'cd "$0" && exec "$@"' "$work" "$@"
}

# What a host does before it waits to be used: folders under /tmp that hosts share are bound into the new one.
cat >host.sh <<'HOST'
set -eu
hostname "$1"
mount -t tmpfs tmpfs /mnt
mkdir /mnt/tmp
mount --bind /tmp /mnt/tmp
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /dev/shm
shift
for shared; do
  case $shared in
    /tmp/*)
      mkdir -p "$shared"
      mount --bind "/mnt$shared" "$shared"
      ;;
  esac
done
mount --bind hosts /etc/hosts
umount /mnt/tmp
umount /mnt
ip link set lo up
: >"$1/ready.$$"
exec sleep 3600
HOST

start() { # start NAME: its process is in NAME.pid
  # shellcheck disable=SC2086  # a list of folders
  unshare --net --uts --ipc --mount sh host.sh "hlat-$1" "$work" $folders >>"$1.log" 2>&1 &
  echo $! >"$1.pid"
}

end_hosts() {
  [ -s one.pid ] && [ -s two.pid ] || return 0
  for host in one two; do
    net=$(readlink "/proc/$(cat $host.pid)/ns/net") || continue
    [ "$net" != "$(readlink /proc/$$/ns/net)" ] || continue # it never became a host
    for process in /proc/[0-9]*; do # daemons that mpirun left behind among them
      [ "$(readlink "$process/ns/net" 2>/dev/null)" = "$net" ] && kill -KILL "${process#/proc/}" 2>/dev/null || :
    done
  done
}

command -v ip >/dev/null && command -v unshare >/dev/null && command -v nsenter >/dev/null || refuse "ip, unshare or nsenter is missing"
unshare --net --uts --ipc --mount true 2>/dev/null || refuse "namespaces are not permitted here"
printf '127.0.0.1 localhost\n10.77.0.1 hlat-one\n10.77.0.2 hlat-two\n' >hosts
trap end_hosts EXIT
trap 'exit 143' TERM INT HUP
start one
start two
one=$(cat one.pid) two=$(cat two.pid)
tries=0
until [ -e "ready.$one" ] && [ -e "ready.$two" ]; do
  tries=$((tries + 1))
  [ $tries -lt 100 ] && kill -0 "$one" && kill -0 "$two" || refuse "a host cannot be made here: $(cat one.log two.log)"
  sleep 0.1
done
ip link add hlat0 netns "$one" type veth peer name hlat0 netns "$two" || refuse "virtual network cards are not permitted here"
on "$one" ip addr add 10.77.0.1/24 dev hlat0
on "$two" ip addr add 10.77.0.2/24 dev hlat0
for host in "$one" "$two"; do on "$host" ip link set hlat0 up; done

cat >agent <<AGENT
#!/bin/sh
# agent HOST COMMAND...
shift
exec nsenter --target $two --net --uts --ipc --mount -- sh -c "cd '$work' && \$*"
AGENT
chmod +x agent
printf 'hlat-one\nhlat-two\n' >hostfile
export OMPI_MCA_plm_rsh_agent="$work/agent" OMPI_MCA_orte_default_hostfile="$work/hostfile"

status=0
on "$one" "$@" & # so that a signal ends the hosts at once
wait $! || status=$?
sed -n 's/^ *hlat0: *//p' "/proc/$one/net/dev" | awk '{ print $9 }' >sent
exit $status
