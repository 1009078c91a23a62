"""The one directory of an installation: its path, its layout and its permissions.

Every checkout has its own, so two of them share no port, no name and no data.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from monarch_portal.embedded.account import ourselves
from monarch_portal.embedded.errors import EmbeddedError
from monarch_portal.embedded.private_files import secret_in, write_owned
from monarch_portal.embedded.server_paths import PostgresPaths, RedisPaths
from monarch_portal.embedded.skypilot_paths import SkyPilotPaths

# The kernel takes 107 bytes for a socket's path; this is the longest name below the directory.
LONGEST_SOCKET_DIRECTORY = 107 - len("/postgres/.s.PGSQL.5432")


@dataclass(frozen=True, slots=True)
class Home:
    """An installation's directory. Nothing is made before `make()`."""

    path: Path

    @classmethod
    def of_checkout(cls, checkout: Path) -> Home:
        """Return the home that MPORTAL_HOME names, else the default one of this checkout."""
        named = os.environ.get("MPORTAL_HOME")
        if named:
            return cls(Path(named).expanduser().absolute())
        resolved = str(checkout.resolve())
        return cls(_default_parent() / f"{checkout.name[:16]}-{_digest(resolved)}")

    def make(self) -> None:
        """Make what is missing. Root's servers and jobs pass through it, but list nothing."""
        mode = 0o711 if os.geteuid() == 0 else 0o700
        self.path.mkdir(mode=mode, parents=True, exist_ok=True)
        self.path.chmod(mode)
        for private in (self.logs, self.path / "blobs", self.path / "uploads"):
            private.mkdir(mode=0o700, exist_ok=True)
        self.binaries.mkdir(mode=0o755, exist_ok=True)
        self.sockets.mkdir(mode=mode, exist_ok=True)
        _require_own(self.sockets)
        self.sockets.chmod(mode)
        secret_in(self._secret_key_file)
        secret_in(self.sealing_keys_file, _new_sealing_key)
        secret_in(self.postgres.secret)

    @property
    def number(self) -> int:
        """A number that differs between most installations: where searches for free ids begin."""
        return int(self.digest, 16)

    @property
    def digest(self) -> str:
        """Eight characters that make the names of this installation unique on the machine."""
        return _digest(str(self.path))

    @property
    def logs(self) -> Path:
        """The directory of the output of the portal's own processes."""
        return self.path / "log"

    @property
    def binaries(self) -> Path:
        """Copies of servers' binaries, where their account can't reach the originals."""
        return self.path / "binaries"

    @property
    def sockets(self) -> Path:
        """The directory of the servers' sockets, elsewhere if its path is too long for them."""
        inside = self.path / "run"
        if len(os.fsencode(inside)) <= LONGEST_SOCKET_DIRECTORY:
            return inside
        return Path(tempfile.gettempdir()) / f"mportal-{os.geteuid()}-{self.digest}"

    @property
    def postgres(self) -> PostgresPaths:
        """The paths of the embedded PostgreSQL."""
        return PostgresPaths(
            data=self.path / "postgres" / "data",
            sockets=self.sockets / "postgres",
            log=self.logs / "postgres.log",
            secret=self.path / "postgres-password",
            admin_secret=self.path / "postgres-admin-password",
            copies=self.binaries,
        )

    @property
    def redis(self) -> RedisPaths:
        """The paths of the embedded Redis."""
        return RedisPaths(self.sockets / "redis", self.logs / "redis.log", self.binaries)

    @property
    def gateway_socket(self) -> Path:
        """The socket through which web passes connections to the gateway."""
        return self.sockets / "gateway" / "connections"

    @property
    def skypilot(self) -> SkyPilotPaths:
        """The paths of SkyPilot's server of this installation."""
        return SkyPilotPaths(self.path / "skypilot", self.logs / "skypilot.log")

    @property
    def secret_key(self) -> str:
        """Django's SECRET_KEY of this installation; empty before the first start."""
        file = self._secret_key_file
        return file.read_text().strip() if file.exists() else ""

    @property
    def _secret_key_file(self) -> Path:
        return self.path / "secret-key"

    @property
    def sealing_keys_file(self) -> Path:
        """The keys that users' secrets are sealed with: newest first, separated by commas."""
        return self.path / "sealing-keys"

    @property
    def sealing_keys(self) -> list[str]:
        """The keys in `sealing_keys_file`; none before the first start."""
        file = self.sealing_keys_file
        return file.read_text().strip().split(",") if file.exists() else []

    def write_sealing_keys(self, keys: list[str]) -> None:
        """Keep these instead, from the next start on."""
        write_owned(self.sealing_keys_file, ",".join(keys), ourselves())

    @property
    def portal_file(self) -> Path:
        """JSON {"url"}: where the portal is reached now. Runners read it when it has moved."""
        return self.path / "portal.json"

    @property
    def url(self) -> str:
        """The portal's address as of its last start; empty before the first."""
        try:
            return str(json.loads(self.portal_file.read_text())["url"])
        except FileNotFoundError:
            return ""

    def write_url(self, url: str) -> None:
        """Write the portal's address to its file. Readable by jobs, which run as other users."""
        unfinished = self.portal_file.with_suffix(".unfinished")
        unfinished.write_text(json.dumps({"url": url}))
        unfinished.chmod(0o644)
        unfinished.rename(self.portal_file)

    @property
    def process_table(self) -> Path:
        """The portal's processes, for the start after a kill."""
        return self.path / "processes.json"

    @property
    def lock(self) -> Path:
        """Locked by the portal that runs on this home."""
        return self.path / "lock"

    @property
    def admin_token_file(self) -> Path:
        """The first user's API token, for the CLI on this machine."""
        return self.path / "admin-token"


def _default_parent() -> Path:
    if os.geteuid() == 0:
        return Path("/var/lib/mportal")
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(data) / "mportal"


def _new_sealing_key() -> str:
    # The form that cryptography's Fernet takes, which is slow to import.
    return base64.urlsafe_b64encode(os.urandom(32)).decode()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _require_own(directory: Path) -> None:
    """Refuse a directory that someone else put where ours goes (the fallback is in /tmp)."""
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise EmbeddedError(f"{directory} belongs to someone else; remove it, or set MPORTAL_HOME.")
