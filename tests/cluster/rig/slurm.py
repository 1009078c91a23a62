"""Slurm: its configuration, its key, its controller. Each node starts its own slurmd."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import stat
import subprocess
from pathlib import Path

from tests.cluster.rig import daemons, places
from tests.cluster.rig.spaces import run

CONTROLLER = "rig-login"
# More than the machine has: SkyPilot requests 4 CPUs and 16 GB for each GPU.
CPUS, MEMORY_MB = 64, 500_000
# How long a silent node stays a member, and with it what runs there.
SLURMD_TIMEOUT_S = 10

CONFIGURATION = """\
ClusterName=rig
SlurmctldHost={controller}({here})
SlurmUser=root
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=batch_sched_delay=0,bf_interval=5
ReturnToService=2
SlurmdTimeout={timeout}
KillWait=5
StateSaveLocation={run}/slurmctld
SlurmdSpoolDir={local}/slurmd
SlurmdPidFile={local}/slurmd.pid
SlurmctldPidFile={run}/slurmctld.pid
MpiDefault=none
MailProg=/bin/true
GresTypes=gpu
SlurmdParameters=config_overrides
NodeName={nodes} CPUs={cpus} RealMemory={memory} Gres=gpu:H100:{gpus} State=UNKNOWN
"""
PARTITION = "PartitionName={} Nodes=ALL Default={} MaxTime=24:00:00 DefaultTime=04:00:00 State=UP\n"


def write_configuration(nodes: tuple[str, ...]) -> None:
    """Write /etc/slurm and the GPUs' device files, which are /dev/null by other names."""
    etc = Path("/etc/slurm")
    shutil.rmtree(etc, ignore_errors=True)
    etc.mkdir(parents=True)
    listed = ",".join(nodes)
    text = CONFIGURATION.format(
        controller=CONTROLLER,
        here=places.HERE,
        timeout=SLURMD_TIMEOUT_S,
        run=places.RUN,
        local=places.NODE_LOCAL,
        nodes=listed,
        cpus=CPUS,
        memory=MEMORY_MB,
        gpus=places.GPUS_PER_NODE,
    )
    for number, partition in enumerate(places.PARTITIONS):
        text += PARTITION.format(partition, "NO" if number else "YES")
    (etc / "slurm.conf").write_text(text)
    (etc / "gres.conf").write_text(
        f"AutoDetect=off\nNodeName={listed} Name=gpu Type=H100 "
        f"File={places.RUN}/gpu[0-{places.GPUS_PER_NODE - 1}]\n"
    )
    # slurmd insists on the plugin. Nothing here uses it; an empty folder keeps it off the machine's
    # control groups all the same.
    (places.RUN / "cgroup").mkdir()
    (etc / "cgroup.conf").write_text(
        f"CgroupPlugin=cgroup/v1\nCgroupMountpoint={places.RUN}/cgroup\nCgroupAutomount=no\n"
    )
    for gpu in range(places.GPUS_PER_NODE):
        os.mknod(places.RUN / f"gpu{gpu}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))


def start_munged() -> None:
    """Start one munged for all nodes: they use it through a Unix socket, which no network cuts."""
    account = pwd.getpwnam("munge")
    folder = places.RUN / "munged"
    key = folder / "munge.key"
    # The default place of the socket is where libmunge looks.
    for place in (folder, Path("/run/munge")):
        place.mkdir(mode=0o755)
        os.chown(place, account.pw_uid, account.pw_gid)
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    os.chown(key, account.pw_uid, account.pw_gid)
    daemons.start(
        "setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups",
        "munged", "--foreground", f"--key-file={key}", f"--pid-file={folder}/pid",
        f"--seed-file={folder}/seed", f"--log-file={folder}/log",
        log="munged",
    )  # fmt: skip
    daemons.await_condition("munged", Path("/run/munge/munge.socket.2").exists)


def start_controller() -> None:
    """Start slurmctld; it remembers nothing of another rig."""
    (places.RUN / "slurmctld").mkdir()
    daemons.start("slurmctld", "-D", "-c", log="slurmctld")


def states() -> dict[str, str]:
    """Return each node's state as `sinfo` shows it, such as idle, mixed, down*."""
    done = subprocess.run(
        ["sinfo", "-h", "-N", "-o", "%N %t"], capture_output=True, text=True, check=False
    )
    return dict(line.split() for line in done.stdout.splitlines())


def resume(node: str) -> None:
    """Request that a node that is down or drained is used again.

    Slurm refuses it for one that came back by itself in the meantime, so check `states` afterwards.
    """
    subprocess.run(
        ["scontrol", "update", f"NodeName={node}", "State=RESUME"],
        capture_output=True,
        check=False,
    )


def jobs_of(cluster: str) -> list[str]:
    """List Slurm's ids of the living jobs that hold a SkyPilot cluster's nodes."""
    return [number for number, name, _ in _living_jobs() if _belongs(name, cluster)]


def job_names() -> list[str]:
    """List the names of all jobs that wait, start or run, without those that are just ending."""
    return run("squeue", "-h", "-t", "PD,CF,R", "-o", "%j").splitlines()


def nodes_of(cluster: str) -> tuple[str, ...]:
    """List the nodes that a SkyPilot cluster's jobs hold."""
    held = [nodes for _, name, nodes in _living_jobs() if _belongs(name, cluster)]
    return tuple(node for nodes in held if nodes for node in _expanded(nodes))


def _living_jobs() -> list[tuple[str, str, str]]:
    listed = run("squeue", "-h", "-o", "%i|%j|%N").splitlines()
    return [(number, name, nodes) for number, name, nodes in (line.split("|") for line in listed)]


def _belongs(name: str, cluster: str) -> bool:
    # SkyPilot appends the user's hash to the name.
    return name == cluster or re.fullmatch(re.escape(cluster) + "-[0-9a-f]{8}", name) is not None


def _expanded(nodes: str) -> list[str]:
    return run("scontrol", "show", "hostnames", nodes).split()
