"""Which files and sockets an embedded server uses, and the URL that reaches it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

DATABASE = "mportal"


@dataclass(frozen=True, slots=True)
class PostgresPaths:
    """Everything one server touches. `data`'s parent belongs to the server's account."""

    data: Path
    sockets: Path
    log: Path
    secret: Path
    copies: Path

    @property
    def password(self) -> str:
        """The password of the portal's role; empty before the first start."""
        return self.secret.read_text().strip() if self.secret.exists() else ""

    def url(self, database: str = DATABASE) -> str:
        """What DATABASE_URL would hold for this server."""
        return (
            f"postgresql://{DATABASE}:{self.password}@/{database}?host={quote(str(self.sockets))}"
        )


@dataclass(frozen=True, slots=True)
class RedisPaths:
    """Everything one server touches. `sockets` belongs to the server's account."""

    sockets: Path
    log: Path
    copies: Path

    @property
    def socket(self) -> Path:
        """The server's socket."""
        return self.sockets / "redis.sock"

    @property
    def url(self) -> str:
        """What REDIS_URL would hold for this server."""
        return f"unix://{self.socket}?db=0"
