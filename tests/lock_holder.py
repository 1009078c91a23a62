"""A hostile job of the local backend: it locks every file of the portal's that it can open."""

from __future__ import annotations

READY = "locked what there is"
# It lists what it may, guesses the names of the rest and of the clusters that will come, and looks
# again for as long as it lives.
PROGRAM = f"""
import fcntl, os, pathlib, time
home = pathlib.Path.home()
cluster, local, portal = home.parent, home.parents[1], home.parents[2]
held = {{}}

def paths():
    for name in ("", "admission.lock", "claims", "ended", "runners", "slots", "slots/lock"):
        yield local / name
    for name in ("", "lock", "processes.json", "skypilot/home/.clouds.lock"):
        yield portal / name
    yield pathlib.Path("/var/lib/mportal/slots/lock")
    for number in range(200):
        yield local / "claims" / str(number)
        prefix, job, _ = f"{{cluster.name}}--".split("-", 2)
        yield local / f"{{prefix}}-{{number}}-1"
        yield local / f"{{prefix}}-{{number}}-1" / "cluster.json"
    for top in (local, portal):
        for folder, folders, files in os.walk(top):
            for name in folders + files:
                yield pathlib.Path(folder, name)

while True:
    for path in paths():
        try:
            if path in held or home in path.parents:
                continue
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held[path] = descriptor
        except OSError:
            pass
    print("{READY}", flush=True)
    time.sleep(0.1)
"""
RUN = f"exec python3 - << 'END'\n{PROGRAM}\nEND\n"
