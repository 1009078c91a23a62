"""`python -m monarch_portal.embedded run|start|stop|status|env|home`: the portal of this checkout.

What must be fixed before Django reads its settings happens here: home, lock, address.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from jobs.backends.local.isolation import can_keep_sockets_apart, jobs_get_own_user
from monarch_portal import static_files
from monarch_portal.embedded import listener as listeners
from monarch_portal.embedded import process_table, texts
from monarch_portal.embedded.errors import EmbeddedError
from monarch_portal.embedded.home import Home
from monarch_portal.embedded.instance_lock import InstanceLock
from monarch_portal.embedded.status import portal_status
from monarch_portal.embedded.terminal import Terminal, detached_terminal, foreground_terminal

CHECKOUT = Path(__file__).resolve().parents[2]
STOP_TIMEOUT_S = 60.0
VERBS = ("run", "start", "stop", "status", "env", "home")


def main(arguments: list[str] | None = None) -> int:
    """Carry out one verb; the exit code."""
    parser = argparse.ArgumentParser(prog="manage.py portal", description=__doc__)
    parser.add_argument("verb", choices=VERBS)
    parser.add_argument("--json", action="store_true", help="status as JSON")
    chosen = parser.parse_args(arguments)
    home = Home.of_checkout(CHECKOUT)
    try:
        match chosen.verb:
            case "run" | "start":
                return _run(home, detached=chosen.verb == "start")
            case "stop":
                return _stop(home)
            case "env":
                return _env(home)
            case "home":
                _say(str(home.path))
                return 0
            case _:
                return _status(home, as_json=chosen.json)
    except EmbeddedError as error:
        # Not to stdout: a shell may be about to evaluate that.
        sys.stderr.write(f"{error}\n")
        return 1


def _run(home: Home, *, detached: bool) -> int:
    home.make()
    lock = InstanceLock(home.lock)
    if not lock.acquire():
        _say(f"The portal already runs at {home.url}" if detached else texts.runs_already(home))
        return 0
    terminal = (detached_terminal if detached else foreground_terminal)(home.logs / "portal.log")
    lock.sign()
    try:
        process_table.end_orphans(home.process_table)
        listener = listeners.listen(home)
        home.write_url(listeners.url_of(listener))
        terminal.say(texts.starting(home))
        _supervise(home, listener, lock, terminal)
    except EmbeddedError as error:
        terminal.say(f"\n{error}\n\nMore in {home.logs}")
        return 1
    except Exception:
        terminal.say(f"\nThe portal has failed. The reason is in {home.logs / 'portal.log'}")
        raise
    terminal.say("The portal has ended.")
    return 0


def _supervise(home: Home, listener: socket.socket, lock: InstanceLock, terminal: Terminal) -> None:
    _collect_static_files()
    # Only now: the settings read what was written above.
    import django  # noqa: PLC0415
    from django.conf import settings  # noqa: PLC0415

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "monarch_portal.settings")
    django.setup()
    from monarch_portal.embedded.supervisor import Supervisor  # noqa: PLC0415

    def on_ready(sign_in_path: str) -> None:
        terminal.say(texts.running(home, sign_in_path, stays=terminal.stays))
        if settings.MPORTAL_LOCAL_BACKEND and jobs_get_own_user() and not can_keep_sockets_apart():
            terminal.say(texts.open_sockets())
        terminal.all_is_well()

    Supervisor(home, listener, lock.leave).run(on_ready)


def _collect_static_files() -> None:
    """Collect the static files that are new or changed since an earlier start: some seconds.

    Without them, as in a checkout that is read-only, files are served from where they are.
    """
    if static_files.collected() is None:
        subprocess.run([sys.executable, "-m", "monarch_portal.collect_static"], check=False)


def _stop(home: Home) -> int:
    lock = InstanceLock(home.lock)
    pid = lock.holder()
    if pid is None:
        _say("No portal runs here.")
        return 0
    os.kill(pid, signal.SIGTERM)
    if not lock.wait_until_free(STOP_TIMEOUT_S):
        raise EmbeddedError(f"The portal (process {pid}) has not ended in {STOP_TIMEOUT_S:.0f} s.")
    _say("The portal has ended. Jobs go on and are taken up at the next start.")
    return 0


def _env(home: Home) -> int:
    """Print what a shell needs so that `mportal` speaks to this portal as its first user."""
    if not home.admin_token_file.exists():
        raise EmbeddedError("This portal has not been started yet: `make run` or `make demo`.")
    _say(f"export MPORTAL_URL={home.url}")
    _say(f"export MPORTAL_TOKEN={home.admin_token_file.read_text().strip()}")
    return 0


def _status(home: Home, *, as_json: bool) -> int:
    status = portal_status(home)
    _say(json.dumps(status.as_dict()) if as_json else texts.status(status))
    return 0 if status.running else 1


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
