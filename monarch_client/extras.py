"""The extras of monarch-portal: imports of packages that a program may lack name the extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from monarch_client.errors import ClientError

# By module: the extra whose packages have it.
EXTRAS = {
    "cloudpickle": "context",
    "cryptography": "gateway",
    "kubernetes": "kubernetes",
    "monarch": "monarch",
    "sky": "skypilot",
    "websockets": "gateway",
}


class MissingExtraError(ClientError, ModuleNotFoundError):
    """A package is missing that an extra of monarch-portal has."""

    code = "missing_extra"


@contextmanager
def named_extras() -> Iterator[None]:
    """Raise MissingExtraError in place of errors about modules that an extra has."""
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if isinstance(error, MissingExtraError) or module not in EXTRAS:
            raise
        raise missing(module) from error


def missing(module: str) -> MissingExtraError:
    """Return the error about a module that is missing here."""
    return MissingExtraError(
        f"The package {module} is missing: pip install 'monarch-portal[{EXTRAS[module]}]'"
    )
