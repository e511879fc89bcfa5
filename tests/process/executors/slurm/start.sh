#!/bin/sh
# A real SLURM of one node on this Debian machine, for tests; as root, without systemd and cgroups.
#
#   start.sh install   install the packages, once
#   start.sh start     start it, and wait until its node is idle
#   start.sh stop      end its jobs and daemons
#   start.sh restart   restart the controller alone, as after a failure; jobs go on
#
# It has two partitions, `normal` (the default) and `scavenger`, whose jobs make room for others.
# /etc/slurm/slurm.conf is written, and a key of munge where there is none; all else is in
# $SLURM_PLACE, by default /tmp/slurm-of-tests.
set -eu
place=${SLURM_PLACE:-/tmp/slurm-of-tests}
conf=/etc/slurm/slurm.conf
mark="# written by tests/process/executors/slurm/start.sh"

install_packages() {
    apt-get install -y --no-install-recommends slurm-wlm munge
}

# The programs of SLURM's daemons are not in everybody's PATH.
PATH=$PATH:/usr/sbin:/sbin

ours() {
    [ ! -e "$conf" ] || grep -qxF "$mark" "$conf" || {
        echo "$conf is that of another SLURM: nothing is changed" >&2
        exit 1
    }
}

write_conf() {
    host=$(hostname -s)
    cores=$(getconf _NPROCESSORS_ONLN)
    memory=$(awk '/^MemTotal:/ {print int($2 / 1024 * 0.9)}' /proc/meminfo)
    cat >"$conf" <<EOF
$mark
ClusterName=tests
SlurmctldHost=$host
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CryptoType=crypto/munge
StateSaveLocation=$place/state
SlurmdSpoolDir=$place/spool
SlurmctldPidFile=$place/slurmctld.pid
SlurmdPidFile=$place/slurmd.pid
SlurmctldLogFile=$place/slurmctld.log
SlurmdLogFile=$place/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,defer=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
KillWait=10
MinJobAge=60
InactiveLimit=0
SlurmctldTimeout=60
SlurmdTimeout=60
ReturnToService=2
MaxArraySize=1001
NodeName=$host CPUs=$cores RealMemory=$memory State=UNKNOWN
PartitionName=normal Nodes=$host Default=YES MaxTime=INFINITE State=UP PriorityTier=10
PartitionName=scavenger Nodes=$host MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=10
EOF
}

# Wait for a command to succeed; the arguments are what is waited for and the command.
await() {
    what=$1
    shift
    for _ in $(seq 150); do
        "$@" >/dev/null 2>&1 && return
        sleep 0.2
    done
    echo "$what did not come up; see the logs in $place" >&2
    exit 1
}

idle() {
    [ "$(sinfo -h -p normal -o %T)" = idle ]
}

runs() {
    pid=$(cat "$place/$1.pid" 2>/dev/null) && kill -0 "$pid" 2>/dev/null
}

end() {
    runs "$1" || return 0
    kill "$pid"
    for _ in $(seq 100); do
        runs "$1" || return 0
        sleep 0.1
    done
    kill -9 "$pid"
}

start_munge() {
    [ -s /etc/munge/munge.key ] || {
        dd if=/dev/urandom of=/etc/munge/munge.key bs=128 count=1 2>/dev/null
        chown munge: /etc/munge/munge.key
        chmod 400 /etc/munge/munge.key
    }
    munge -n >/dev/null 2>&1 && return
    mkdir -p /run/munge /var/log/munge /var/lib/munge
    chown munge: /run/munge /var/log/munge /var/lib/munge
    runuser -u munge -- munged --pid-file="$place/munged.pid"
    await munged munge -n
}

start() {
    ours
    mkdir -p "$place/state" "$place/spool"
    chmod 1777 "$place"
    write_conf
    start_munge
    runs slurmctld || slurmctld
    await slurmctld scontrol ping
    runs slurmd || slurmd
    await "the node" idle
    sinfo
}

stop() {
    runs slurmctld && scancel --user=root --quiet 2>/dev/null && sleep 1
    end slurmd
    end slurmctld
    end munged
}

case ${1:-} in
install) install_packages ;;
start) start ;;
stop) stop ;;
restart) end slurmctld; slurmctld; await slurmctld scontrol ping ;;
*) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 2 ;;
esac
