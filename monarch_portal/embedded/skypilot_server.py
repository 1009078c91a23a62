"""SkyPilot's API server as a part of the portal: on loopback, with a token, in a home of its own.

It takes up to half a minute to answer, so `start` returns at once; a
request that comes too early fails with the message that the server is away.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import signal
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from monarch_portal.embedded import child
from monarch_portal.embedded.account import ourselves
from monarch_portal.embedded.child import Process
from monarch_portal.embedded.errors import EmbeddedError
from monarch_portal.embedded.private_files import make_private, new_secret, secret_in, write_owned
from monarch_portal.embedded.skypilot_paths import SkyPilotPaths

SUPPORTED = "0.14."
PLUGIN = "monarch_client.skypilot.server_plugin.PortalPlugin"
# Requests under way may end within it; what is cut off then, the portal requests again.
GRACE_S = 10
STOP_PATIENCE_S = 20.0
# Of files that it is sent the server forgets the modes, and gives nodes what it has made of them.
OWN_EYES_ONLY = 0o077
# Every process of the server carries it, so that a later start finds what a kill has left.
MARK = "MPORTAL_SKYPILOT_ROOT"
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")
PASSED_ON = ("LANG", "LC_ALL", "TZ", "TMPDIR", *CERTIFICATES)
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
SEARCHED = range(46600, 46800)


class SkyPilotServer:
    """One API server under our own supervision."""

    def __init__(self, paths: SkyPilotPaths, number: int) -> None:
        """Prepare a server that is not started yet.

        `number` picks where the search for a free port begins: best another per installation.
        """
        self._paths = paths
        self._number = number

    def start(self) -> Process:
        """Start the server and return at once. EmbeddedError where SkyPilot can't be used."""
        problem = version_problem()
        if problem:
            raise EmbeddedError(problem)
        for directory in (self._paths.root, self._paths.home, self._paths.client_home):
            make_private(directory, ourselves())
        end_leftovers(self._paths.root)
        # SkyPilot's client sends no token that begins otherwise.
        token = secret_in(self._paths.token_file, lambda: f"sky_{new_secret()}")
        port = self._port()
        endpoint = f"http://127.0.0.1:{port}"
        self._write_plugins(endpoint)
        known = {"endpoint": endpoint, "token": token}
        write_owned(self._paths.server_file, json.dumps(known), ourselves())
        argv = [sys.executable, "-m", "sky.server.server", "--host=127.0.0.1", f"--port={port}"]
        program = child.Program(
            argv,
            log=self._paths.log,
            env=self._environment(port),
            cwd=self._paths.home,
            umask=OWN_EYES_ONLY,
        )
        return WholeGroup(child.start(program), self._paths.root)

    def _port(self) -> int:
        """Return the port of the previous start, or one that is free."""
        last = urlsplit(self._paths.endpoint).port
        size = len(SEARCHED)
        searched = [SEARCHED[(self._number + step) % size] for step in range(size)]
        for port in [*([last] if last else []), *searched]:
            if _is_free(port):
                return port
        raise EmbeddedError(f"No port of {SEARCHED.start}-{SEARCHED.stop} is free for SkyPilot.")

    def _write_plugins(self, endpoint: str) -> None:
        """Write the list of plugins: ours first, then those of the administrator's plugins.yaml."""
        parameters = {
            "secret_file": str(self._paths.token_file),
            "probe_url": f"{endpoint}/api/health",
        }
        own = self._paths.home / ".sky" / "plugins.yaml"
        theirs = (yaml.safe_load(own.read_text()) or {}) if own.exists() else {}
        plugins = [{"class": PLUGIN, "parameters": parameters}, *theirs.pop("plugins", [])]
        text = yaml.safe_dump(theirs | {"plugins": plugins})
        write_owned(self._paths.plugins, text, ourselves())

    def _environment(self, port: int) -> dict[str, str]:
        outside = os.environ
        proxies = (*PROXIES, *(name.upper() for name in PROXIES))
        passed_on = {name: outside[name] for name in (*PASSED_ON, *proxies) if name in outside}
        packages = [str(Path(__file__).resolve().parents[2]), outside.get("PYTHONPATH", "")]
        tools = [str(Path(sys.executable).parent), outside.get("PATH", os.defpath)]
        return passed_on | {
            "HOME": str(self._paths.home),
            "PATH": os.pathsep.join(tools),
            "PYTHONPATH": os.pathsep.join(filter(None, packages)),
            "PYTHONUNBUFFERED": "1",
            "IS_SKYPILOT_SERVER": "true",
            "SKYPILOT_API_SERVER_LOCAL_PORT": str(port),
            "SKYPILOT_DISABLE_USAGE_COLLECTION": "1",
            "SKYPILOT_GRACE_PERIOD_SECONDS": str(GRACE_S),
            "SKYPILOT_SERVER_PLUGINS_CONFIG": str(self._paths.plugins),
            MARK: str(self._paths.root),
        }


class WholeGroup:
    """The server with all that it has started: when it ends, they end."""

    def __init__(self, process: Process, root: Path) -> None:
        self._process = process
        self._root = root
        self._is_cleared = False
        self.pid = process.pid

    def poll(self) -> int | None:
        """Return the exit code of the server; None while it runs."""
        code = self._process.poll()
        if code is not None and not self._is_cleared:
            self._is_cleared = True
            end_leftovers(self._root)
        return code

    def wait(self, timeout: float | None = None) -> int:
        """Wait as `Process.wait` does."""
        code = self._process.wait(timeout)
        self.poll()
        return code

    def send_signal(self, sig: int) -> None:
        """Send a signal to the server, which ends its children itself; SIGKILL goes to all."""
        self._process.send_signal(sig)
        if sig == signal.SIGKILL:
            end_leftovers(self._root)


def is_wanted(paths: SkyPilotPaths, setting: str) -> bool:
    """Whether this installation needs the server now. `setting` is MPORTAL_SKYPILOT."""
    return setting == "on" or (setting == "auto" and paths.has_cloud())


def version_problem() -> str:
    """Describe why the installed SkyPilot can't be used and what to do; "" if it can."""
    try:
        version = importlib.metadata.version("skypilot")
    except importlib.metadata.PackageNotFoundError:
        return "SkyPilot is not installed here: pip install 'monarch-portal[skypilot]'"
    if not version.startswith(SUPPORTED):
        return (
            f"SkyPilot {version} is installed and this portal works with {SUPPORTED}x: "
            "pip install 'monarch-portal[skypilot]'"
        )
    return ""


def answers(paths: SkyPilotPaths) -> bool:
    """Whether the server is up and takes requests."""
    endpoint = paths.endpoint
    if not endpoint:
        return False
    try:
        with urllib.request.urlopen(f"{endpoint}/api/health", timeout=2) as response:  # noqa: S310
            return bool(json.load(response).get("status") == "healthy")
    except (OSError, urllib.error.URLError, ValueError):
        return False


def end_leftovers(root: Path) -> None:
    """Kill every process of a server that ran on `root`: the portal's lock says none should."""
    for pid in _marked(root):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _marked(root: Path) -> Iterator[int]:
    mark = f"{MARK}={root}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                yield int(entry.name)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
