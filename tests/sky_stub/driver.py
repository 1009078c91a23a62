"""A program that runs one job on its nodes, each a process tree, and merges their output.

It imports nothing of this repository: `python -I -S driver.py FOLDER`. A node's processes end with
its script, as on Slurm.
"""

import ctypes
import json
import os
import random
import selectors
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

DIM, CYAN, RED, RESET = "\x1b[2m", "\x1b[36m", "\x1b[31m", "\x1b[0m"
PR_SET_CHILD_SUBREAPER = 36
LAST_WORDS_S = 0.2
PEERS_S = 1.0
# How many of the pieces that srun passes on end in the middle of a line.
TORN = 0.3


class Node:
    """One node's script: its process, and the output that is not a whole line yet."""

    def __init__(self, job, rank, script, folder):
        self.rank = rank
        self.mark = f"SKY_STUB_NODE={job['homes'][rank]}".encode()
        self.rest = b""
        self.out = b""
        self.is_open = True
        self.code = None
        home = job["homes"][rank]
        self.process = subprocess.Popen(
            ["/bin/bash", "-c", script],
            cwd=f"{home}/sky_workdir",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={
                "PATH": os.environ["PATH"],
                "HOME": home,
                "USER": "stub",
                "SHELL": "/bin/bash",
                "PYTHONUNBUFFERED": "1",
                "SKYPILOT_NODE_RANK": str(rank),
                "SKYPILOT_SETUP_NODE_RANK": str(rank),
                "SKYPILOT_SETUP_NODE_IPS": job["environment"]["SKYPILOT_NODE_IPS"],
                **job["environment"],
                **{name: text.format(rank=rank) for name, text in job["own"].items()},
                "SKY_STUB_NODE": home,
                "SKY_STUB_JOB": str(folder),
            },
        )
        self.prefix = _prefix(job, rank, self.process.pid).encode()
        if Path(home, ".no-power").exists():
            self.signal_group(signal.SIGKILL)

    def signal_group(self, number):
        """Send a signal to all that have not left the script's process group."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def bury(self):
        """Kill all that is left of this node's part of the job."""
        self.signal_group(signal.SIGKILL)
        for pid in _carriers(self.mark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class Driver:
    """A job from its first line to its last."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.job = json.loads((self.folder / "job.json").read_text())
        self.log = (self.folder / "run.log").open("ab", buffering=0)
        self.is_cancelled = False
        self.deadline = None
        self.now = json.loads((self.folder / "status.json").read_text())
        began = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
        self.now |= {"pid": os.getpid(), "began": began}
        signal.signal(signal.SIGTERM, self.cancel)

    def cancel(self, *_):
        """End what runs, the polite way first."""
        self.is_cancelled = True

    def look_for_cancel(self):
        """Look for a cancel request that came before our pid was known.

        It could send no signal then.
        """
        self.is_cancelled |= (self.folder / "cancelled").exists()

    def run(self):
        """Run setup and the job on all nodes, and return the job's status at the end."""
        count = len(self.job["homes"])
        nodes = f"{count} node{'s' if count > 1 else ''}"
        self.say(f"{DIM}├── {RESET}{DIM}Waiting for task resources on {nodes}.{RESET}")
        hint = f"{DIM}(Ctrl-C to exit log streaming; job will not be killed){RESET}"
        self.say(f"{DIM}└── {RESET}Job started. Streaming logs... {hint}")
        if self.job["setup"]:
            self.store("SETTING_UP")
            if codes := [code for code in self.everywhere("setup") if code]:
                self.say(f"ERROR: {RED}Job {self.job['id']}'s setup failed:{RESET} {codes}")
                return "FAILED_SETUP"
        self.store("RUNNING", start_at=time.time())
        codes = self.everywhere("run")
        if not any(codes):
            return "SUCCEEDED"
        number = self.job["id"]
        self.say(f"ERROR: {RED}Job {number} failed with return code list:{RESET} {codes}")
        return "FAILED"

    def everywhere(self, part):
        """Run a script on every node and return the exit codes. One that fails ends the others."""
        self.look_for_cancel()
        self.deadline = None
        if self.is_cancelled:
            return [143]
        ranks = range(len(self.job["homes"]))
        nodes = [Node(self.job, rank, self.job[part], self.folder) for rank in ranks]
        with selectors.DefaultSelector() as selector:
            for node in nodes:
                os.set_blocking(node.process.stdout.fileno(), False)
                selector.register(node.process.stdout, selectors.EVENT_READ, node)
            while any(node.code is None for node in nodes):
                self.turn(selector, nodes)
        return [node.code for node in nodes]

    def turn(self, selector, nodes):
        """Read the output, finish the nodes that ended, and end those that must end."""
        heard = [key.data for key, _ in selector.select(0.02)]
        for node in heard:
            self.read(selector, node)
        self.mix(nodes)
        for node in nodes:
            if node.code is None and node.process.poll() is not None:
                self.finish(selector, node)
        if self.is_cancelled or any(node.code for node in nodes):
            self.end_the_rest(nodes)

    def end_the_rest(self, nodes):
        """Send SIGTERM to the process groups first, and after the grace SIGKILL to everything."""
        if self.deadline is None:
            grace = self.job["grace_s"] if self.is_cancelled else PEERS_S
            self.deadline = time.monotonic() + grace
            for node in nodes:
                node.signal_group(signal.SIGTERM)
        elif time.monotonic() > self.deadline:
            for node in nodes:
                node.bury()

    def read(self, selector, node):
        """Read a node's output and return whether there was any."""
        try:
            data = os.read(node.process.stdout.fileno(), 1 << 16)
        except BlockingIOError:
            return False
        if not data:
            selector.unregister(node.process.stdout)
            node.is_open = False
            return False
        text = (node.rest + data).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, node.rest = text.split(b"\n")
        self.write(node, b"".join(node.prefix + line + b"\n" for line in lines))
        return True

    def finish(self, selector, node):
        """Read the remaining output of a node whose script has ended."""
        until = time.monotonic() + LAST_WORDS_S
        while node.is_open and (self.read(selector, node) or time.monotonic() < until):
            time.sleep(0.002)
        node.bury()
        while node.is_open and self.read(selector, node):
            pass
        if node.is_open:
            selector.unregister(node.process.stdout)
        if node.rest:
            # Without its end: streams leave it out, as SkyPilot's do.
            self.write(node, node.prefix + node.rest)
        self.log.write(node.out)
        code = node.process.returncode
        node.code = 128 - code if code < 0 else code

    def write(self, node, data):
        """Write to the log, or to the buffer that is mixed with the output of other nodes."""
        if self.job["interleave"]:
            node.out += data
        else:
            self.log.write(data)

    def mix(self, nodes):
        """Mix the nodes' output as srun does: write what has arrived, even within a line."""
        for node in random.sample(nodes, len(nodes)):
            if node.out:
                is_torn = random.random() < TORN
                cut = random.randint(1, len(node.out)) if is_torn else len(node.out)
                self.log.write(node.out[:cut])
                node.out = node.out[cut:]

    def say(self, text):
        self.log.write(text.encode() + b"\n")

    def store(self, status, **more):
        self.now |= {"status": status, **more}
        new = self.folder / ".status.json.new"
        new.write_text(json.dumps(self.now))
        new.replace(self.folder / "status.json")


def note(job, status):
    """Record the end of the job with the witness."""
    event = {"at": round(time.time(), 3), "event": "job_ended", "cluster": job["cluster"]}
    event |= {"hash": job["hash"], "job_name": job["name"], "status": status}
    with Path(job["state"], "events.ndjson").open("ab", buffering=0) as events:
        events.write(json.dumps(event).encode() + b"\n")


def _prefix(job, rank, pid):
    place = f", ip={job['addresses'][rank]}" if rank else ""
    if job["cluster_nodes"] == 1:
        label = job["name"] if job["name"] != "-" else "task"
        return f"{CYAN}({label}, pid={pid}){RESET} "
    return f"{CYAN}({f'worker{rank}' if rank else 'head'}, rank={rank}, pid={pid}{place}){RESET} "


def _carriers(mark):
    """Yield the processes that belong to this job and this node."""
    marks = {mark, f"SKY_STUB_JOB={sys.argv[1]}".encode()}
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            is_other = entry.name.isdigit() and int(entry.name) != os.getpid()
            if is_other and marks <= set((entry / "environ").read_bytes().split(b"\0")):
                yield int(entry.name)


def main():
    # Orphans of the scripts become ours, and end with us.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    driver = Driver(sys.argv[1])
    status = driver.run()
    if driver.is_cancelled:
        status = "CANCELLED"
    driver.store(status, end_at=time.time())
    note(driver.job, status)


if __name__ == "__main__":
    main()
