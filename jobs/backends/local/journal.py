"""Read the frames that a dead runner had not delivered.

The journal is in a directory that belongs to the job and may contain anything: links, pipes, trash.
A child process reads it as the job's user, bounded in time and memory, with the runner's own code.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from monarch_client.runner.vocabulary.limits import MAX_FRAME_BYTES

# Load all modules before giving up root: the job's user may not reach the interpreter.
_READ_JOURNAL = """
import os, resource, signal, sys
from pathlib import Path
runner, state, uid = sys.argv[1:]
sys.path.insert(0, runner)
try:
    from monarch_client.runner.journal.final_frames import read_final_frames
except ImportError:  # a runner of an earlier release, which started before an upgrade
    try:
        from monarch_client.runner.last_words import read_last_words as read_final_frames
    except ImportError:
        from monarch_client.runner.journal import read_leftovers
        def read_final_frames(root):
            return read_leftovers(root / "state" / "journal")
os.chdir(state)
if uid:
    os.setgroups([]); os.setresgid(*[int(uid)] * 3); os.setresuid(*[int(uid)] * 3)
resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))
signal.alarm(300)
if any(not path.is_file() or path.is_symlink() for path in Path("journal").iterdir()):
    sys.exit("this is not what a runner writes")
for line in read_final_frames(Path("..")):
    sys.stdout.buffer.write(line)
"""


def unacknowledged_frames(runner: Path, state: Path, uid: int | None) -> Iterator[bytes]:
    """Return the readable unacknowledged lines of the journal in `state`, then the verdict.

    `runner` is the program that wrote them; `uid` is the job's user, None for the portal's.
    """
    if not state.is_dir():
        return
    user = "" if uid is None else str(uid)
    command = [sys.executable, "-I", "-S", "-c", _READ_JOURNAL, str(runner), str(state), user]
    with subprocess.Popen(
        command, env={}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        assert child.stdout is not None  # noqa: S101 - for the type checker: PIPE is set
        # A longer line is no frame, and neither are its pieces: their parser stops.
        while line := child.stdout.readline(MAX_FRAME_BYTES):
            yield line
