"""Start the runners of one attempt. Runs alone, as `python -I -S launcher.py`.

Reads a plan (JSON, written by `isolation.py`) from stdin. For each node: a child in a session of
its own that hides what it need not see, gives up root, and becomes the runner. Ends when all have.
A process of its own because none of this is safe in a process with threads.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import traceback
from typing import Any, NoReturn

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
MS_BIND_ALL = 0x1000 | 0x4000
MS_PRIVATE_ALL = 0x40000 | 0x4000
MS_NOSUID_NODEV = 0x2 | 0x4
MS_NOSUID_NODEV_NOEXEC = 0x2 | 0x4 | 0x8
HIDDEN = b"hidepid=invisible"
PR_SET_NO_NEW_PRIVS = 38
# Landlock(7), the same numbers on every architecture; scopes came with Linux 6.12.
SYS_LANDLOCK_CREATE_RULESET = 444
SYS_LANDLOCK_RESTRICT_SELF = 446
LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET = 0x1
# When memory runs out, jobs go before the portal and its database.
OOM_SCORE = "300"

libc = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    """Start every node of the plan on stdin; 0 when all of them run."""
    plan = json.load(sys.stdin)
    failures = [failure for node in plan["nodes"] if (failure := start(plan, node))]
    sys.stderr.write("\n".join(failures))
    return 1 if failures else 0


def start(plan: dict[str, Any], node: dict[str, Any]) -> str:
    """Start one node; what went wrong, or "". The pipe closes by itself when the runner begins."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        become_runner(plan, node, writing)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        failure = pipe.read()
    if failure:
        remove(node["started"])
    return failure


def become_runner(plan: dict[str, Any], node: dict[str, Any], pipe: int) -> NoReturn:
    """Turn this process into the runner of `node`, or report through `pipe` why that failed."""
    try:
        # Files of the launcher are readable by the portal's user only.
        os.umask(0o077)
        if claim(node["started"]):
            os.setsid()
            redirect(node["output"], pipe)
            os.umask(0o022)
            with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123
                file.write(OOM_SCORE)
            isolate(plan, node)
            reset_signals()
            os.chdir(node["cwd"])
            os.execve(node["command"][0], node["command"], node["environment"])  # noqa: S606
    except BaseException as error:  # noqa: BLE001 - nothing above could report it
        traceback.print_exc()
        os.write(pipe, "node {}: {}".format(node["rank"], error).encode())
        os._exit(1)
    os._exit(0)


def redirect(output: str, pipe: int) -> None:
    """Read from nowhere, write into `output`, and keep no other open file but the pipe."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.closerange(3, pipe)
    os.closerange(pipe + 1, os.sysconf("SC_OPEN_MAX"))


def claim(started: str) -> bool:
    """Mark the node as started, with this process; False if it has been before.

    Nothing but the mark decides: a node whose runner has ended is not started a second time.
    """
    with open("/proc/sys/kernel/random/boot_id") as boot, open("/proc/self/stat") as stat:  # noqa: PTH123
        ticks = stat.read().rpartition(")")[2].split()[19]
        mark = f"{boot.read().strip()} {os.getpid()} {ticks}\n"
    draft = f"{started}.{os.getpid()}"
    with open(draft, "w") as file:  # noqa: PTH123
        file.write(mark)
    try:
        os.link(draft, started)
    except FileExistsError:
        return False
    finally:
        remove(draft)
    return True


def remove(path: str) -> None:
    """Delete a file. Silent if it does not exist."""
    try:
        os.unlink(path)  # noqa: PTH108
    except FileNotFoundError:
        return


def isolate(plan: dict[str, Any], node: dict[str, Any]) -> None:
    """Leave root and its files behind. Nothing to do where the portal is an ordinary user."""
    uid = plan["uid"]
    if uid is None:
        return
    if unshare(required=bool(plan["covered"])):
        hide(plan["covered"], plan["visible"], node["tmp"])
        hide_processes()
        name_user(uid, node["environment"])
    else:
        node["environment"]["TMPDIR"] = node["tmp"]
        # All jobs share /tmp here, and Monarch's log there belongs to the first of them: the
        # others would have all of it on their standard error instead.
        node["environment"]["MONARCH_FILE_LOG"] = "error"
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    keep_to_own_sockets()


class LandlockRuleset(ctypes.Structure):
    """The kernel's `struct landlock_ruleset_attr`."""

    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


def keep_to_own_sockets() -> None:
    """Refuse connections of this node's processes to abstract Unix sockets of other processes.

    Monarch's workers serve one each, without a certificate, and any user may connect to it.
    Kernels before 6.12 cannot refuse that: the node then runs all the same.
    """
    ruleset = LandlockRuleset(scoped=LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET)
    size = ctypes.c_size_t(ctypes.sizeof(ruleset))
    descriptor = libc.syscall(SYS_LANDLOCK_CREATE_RULESET, ctypes.byref(ruleset), size, 0)
    if descriptor < 0:
        return
    check(libc.syscall(SYS_LANDLOCK_RESTRICT_SELF, descriptor, 0), "sockets of its own")
    os.close(descriptor)


def unshare(*, required: bool) -> bool:
    """Get mounts and shared memory of our own. False where that is refused and not required."""
    try:
        check(libc.unshare(CLONE_NEWNS | CLONE_NEWIPC), "private mounts")
        check(libc.mount(b"none", b"/", None, MS_PRIVATE_ALL, None), "private mounts")
    except OSError:
        if required:
            raise
        return False
    return True


def hide(covered: list[str], visible: list[str], tmp: str) -> None:
    """Put an empty directory over each of `covered`, then `visible` back into them.

    The node gets its own /tmp, on its own disk space, and its own shared memory.
    """
    own_tmp = held(tmp)
    sources = [(held(path), path) for path in visible]
    for path in covered:
        mount_empty(path, b"mode=0755")
    if os.path.isdir("/dev/shm"):  # noqa: PTH112, S108
        mount_empty("/dev/shm", b"mode=1777")  # noqa: S108
    for path in ("/tmp", "/var/tmp"):  # noqa: S108
        bind(own_tmp, path)
    for source, path in sources:
        os.makedirs(path, exist_ok=True)  # noqa: PTH103
        bind(source, path)


def hide_processes() -> None:
    """Hide other users' processes from the node's user: their command lines may hold secrets.

    Kernels before 5.8 lack this option per mount: it would apply to the whole machine.
    """
    try:
        result = libc.mount(b"proc", b"/proc", b"proc", MS_NOSUID_NODEV_NOEXEC, HIDDEN)
        check(result, "hide processes")
    except OSError:
        traceback.print_exc()


def name_user(uid: int, environment: dict[str, str]) -> None:
    """Give the node's user the name that its environment says, in files that only it sees.

    Programs look it up: Monarch names its log's directory after it, in /tmp.
    """
    name, home = environment["USER"], environment["HOME"]
    add_line("/etc/passwd", f"{name}:x:{uid}:{uid}::{home}:/bin/sh\n")
    add_line("/etc/group", f"{name}:x:{uid}:\n")


def add_line(path: str, line: str) -> None:
    """Show a copy of the file with one more line in its place. Without it a job runs as well."""
    draft = os.path.join("/dev/shm", os.path.basename(path))  # noqa: PTH118, PTH119, S108
    try:
        with open(path) as file:  # noqa: PTH123
            text = file.read()
        with open(draft, "x") as file:  # noqa: PTH123
            file.write(text.rstrip("\n") + "\n" + line)
        bind(draft, path)
    except OSError:
        traceback.print_exc()
    # What is shown elsewhere goes on there.
    remove(draft)


def held(path: str) -> str:
    """Return a name for `path` that still works when something else is mounted over it."""
    return f"/proc/self/fd/{os.open(path, os.O_PATH | os.O_CLOEXEC)}"


def mount_empty(path: str, options: bytes) -> None:
    """Mount an empty file system in memory over `path`."""
    check(
        libc.mount(b"tmpfs", os.fsencode(path), b"tmpfs", MS_NOSUID_NODEV, options),
        f"cover {path}",
    )


def bind(source: str, target: str) -> None:
    """Show `source` at `target` as well."""
    check(
        libc.mount(os.fsencode(source), os.fsencode(target), None, MS_BIND_ALL, None),
        f"show {target}",
    )


def check(result: int, what: str) -> None:
    """Raise what the C library complains about."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def reset_signals() -> None:
    """Restore default signals: the interpreter or its parent may have ignored or blocked some."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


if __name__ == "__main__":
    sys.exit(main())
