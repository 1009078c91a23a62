"""The files and sockets of an embedded server, and the URL that reaches it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

# The portal's database, and its role; the superuser is for making those two.
DATABASE = "mportal"
ADMIN = "postgres"


@dataclass(frozen=True, slots=True)
class PostgresPaths:
    """The paths of PostgreSQL. `data`'s parent belongs to the server's account."""

    data: Path
    sockets: Path
    log: Path
    secret: Path
    admin_secret: Path
    copies: Path

    @property
    def password(self) -> str:
        """The password of the portal's role; empty before the first start."""
        return self.secret.read_text().strip() if self.secret.exists() else ""

    def url(self, database: str = DATABASE) -> str:
        """Return the DATABASE_URL of this server."""
        return self._url(DATABASE, self.password, database)

    @property
    def admin_url(self) -> str:
        """The URL of the superuser, who makes the portal's role and database."""
        return self._url(ADMIN, self.admin_secret.read_text().strip(), "postgres")

    def _url(self, role: str, password: str, database: str) -> str:
        return f"postgresql://{role}:{password}@/{database}?host={quote(str(self.sockets))}"


@dataclass(frozen=True, slots=True)
class RedisPaths:
    """The paths of Redis. `sockets` belongs to the server's account."""

    sockets: Path
    log: Path
    copies: Path

    @property
    def socket(self) -> Path:
        """The server's socket."""
        return self.sockets / "redis.sock"

    @property
    def url(self) -> str:
        """The REDIS_URL of this server."""
        return f"unix://{self.socket}?db=0"
