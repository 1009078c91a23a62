"""Find py-spy on a node, and run it on a process.

It only reads the memory of the process (`--nonblocking`), which is never stopped.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from monarch_client.runner.programs import environment

if TYPE_CHECKING:
    from monarch_client.runner.place import Place

MISSING = (
    "There is no py-spy on this node: neither beside the Python of the job, nor on its PATH. Add "
    "`pip install py-spy` to the setup of the job; torchmonarch brings it along."
)
_NAME = "py-spy"
# A running program changes while it is read: another try may succeed.
_LOOKS = 3
_MOST_S = 10.0
_REAP_S = 1.0
# More than a frame can hold; the rest is never read.
MOST_BYTES = 256 * 1024
_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
_WHY_CHARS = 300
_SPACES = ("mnt", "user")


class Look(NamedTuple):
    """The stacks of one process, or why there are none."""

    text: str
    why: str = ""


def find(place: Place, pid: int) -> str | None:
    """Find py-spy beside the job's Python, on PATH, else beside the Python of the process."""
    path = place.config.envs.get("PATH") or os.environ.get("PATH", "")
    python = shutil.which(environment.python_of(place), path=path)
    folders = [Path(python).parent, Path(python).resolve().parent] if python else []
    folders += map(Path, path.split(os.pathsep))
    # Without an entry for this user there is no home.
    with contextlib.suppress(RuntimeError):
        folders.append(Path.home() / ".local/bin")
    if _has_same_rights(pid):
        folders += _folders_of(pid)
    return shutil.which(_NAME, path=os.pathsep.join(str(f) for f in folders if f.is_absolute()))


def _has_same_rights(pid: int) -> bool:
    """Whether a process has the privileges and files of this one.

    Otherwise its programs must not be run from here.
    """
    folder, own = Path("/proc", str(pid)), Path("/proc/self")
    try:
        theirs, ours = ([os.readlink(str(at / "ns" / n)) for n in _SPACES] for at in (folder, own))
        return theirs == ours and folder.stat().st_uid == os.geteuid()
    except OSError:
        return False


def _folders_of(pid: int) -> list[Path]:
    """Return the folders with programs of a process's environment, as far as they are readable."""
    folder = Path("/proc", str(pid))
    found = []
    try:
        program = (folder / "cmdline").read_bytes().split(b"\0")[0].decode("utf-8", "replace")
        if Path(program).is_absolute():
            found.append(Path(program).parent)
        found.append((folder / "exe").resolve().parent)
        for variable in (folder / "environ").read_bytes().split(b"\0"):
            name, _, value = variable.decode("utf-8", "replace").partition("=")
            if name in {"VIRTUAL_ENV", "CONDA_PREFIX"} and value:
                found.append(Path(value, "bin"))
    except OSError:
        pass  # it has ended, or is unreadable
    return found


def look_at(program: str, pid: int) -> Look:
    """Dump the stacks of all threads of a process, within `_MOST_S`."""
    give_up_at = time.monotonic() + _MOST_S
    said = ""
    for _ in range(_LOOKS):
        try:
            output = _output_of([program, "dump", "--nonblocking", "--pid", str(pid)], give_up_at)
        except OSError as error:
            return Look("", f"{program} cannot be started: {error}")
        said = output.decode("utf-8", "replace").strip()
        if "\nThread " in said:
            return Look(said)
        if _is_forbidden(said) or time.monotonic() >= give_up_at:
            break
    return Look("", _why(said, is_late=time.monotonic() >= give_up_at))


def _output_of(argv: list[str], give_up_at: float) -> bytes:
    """Return the output of a program on both streams, up to the time limit.

    Its exit code is ignored: the main loop, which reaps all children, may have taken it.
    """
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
        start_new_session=True,
        env={"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8"},
    )
    assert process.stdout is not None  # noqa: S101 - for the type checker: PIPE is set
    output, has_all = bytearray(), False
    with process.stdout as pipe:
        # Unlike select, it takes the descriptors of a runner with a thousand connections.
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        while len(output) < MOST_BYTES and not has_all:
            left_s = give_up_at - time.monotonic()
            if left_s <= 0 or not poll.poll(left_s * 1000):
                break
            piece = os.read(pipe.fileno(), 65536)
            has_all = not piece
            output += piece
    if not has_all:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    # What hangs in the kernel is left to the main loop.
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_REAP_S)
    return bytes(output)


def _is_forbidden(said: str) -> bool:
    return "permission denied" in said.lower() or "Operation not permitted" in said


def _why(said: str, *, is_late: bool) -> str:
    if _is_forbidden(said):
        return (
            f"py-spy may not read this process{_scope()}. In a container, give it the capability "
            "SYS_PTRACE (docker run --cap-add SYS_PTRACE; in a Kubernetes pod, "
            "securityContext.capabilities.add). On a machine of its own have the setup of the job "
            "run `sudo sysctl -w kernel.yama.ptrace_scope=0`; else the node's administrator does."
        )
    if is_late:
        return f"py-spy did not end within {_MOST_S:g} s."
    first = said.split("\n", 1)[0]
    return f"py-spy says: {first[:_WHY_CHARS] or 'nothing'}"


def _scope() -> str:
    try:
        return f" (kernel.yama.ptrace_scope is {_SCOPE.read_text().strip()} here)"
    except OSError:
        return ""
