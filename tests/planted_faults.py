"""Programs of jobs that really go wrong, on whatever machines they run."""

from __future__ import annotations

CRASH = "python3 -c 'import ctypes; ctypes.string_at(0)'"
NO_DRIVER = "python3 -c 'import ctypes; ctypes.CDLL(\"libcuda.so.1\")'"
# The worker of the driver's own node is stopped when the driver requests its mesh `all`.
STOPPED_WORKER = """
python3 - <<'END'
import os, pathlib, signal
worker = pathlib.Path(os.environ["MPORTAL_RUNTIME_FILE"]).with_name("worker.py")
for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try:
        command = entry.read_bytes().split(bytes(1))
    except OSError:
        continue
    if os.fsencode(worker) in command[1:2]:
        os.kill(int(entry.parent.name), signal.SIGSTOP)
from mportal_runtime import meshes
meshes.all.spawn_procs(per_host={"gpus": 1})
END
"""
# How soon Monarch then gives up, as variables of the job.
SOON = {"HYPERACTOR_MESH_ATTACH_CONFIG_TIMEOUT": "5s"}
