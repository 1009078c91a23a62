"""Every error the client raises on purpose: a stable code and a sentence that says what to do.

ClientError
├── InvalidSpecErrors          invalid_spec        carries every SpecError found
├── ArchiveError               invalid_upload
│   └── ArchiveTooLargeError   upload_too_large
├── NotSignedInError           not_signed_in
├── UnreachableError           unreachable
│   └── UnprovedPortalError    unproved_portal     another program may answer at its address
├── UnknownNameError           not_found           an object that a command names
├── UnexpectedAnswerError      unexpected_answer   not a portal, or one of another version
└── RefusedError               the portal's own code
    ├── InvalidValueError      any code with status 400 or 422
    ├── MissingError           not_found
    ├── ForbiddenError         permission_denied
    └── ConflictError          any code with status 409
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar


class ClientError(Exception):
    """An error that is reported to the user. The docstring is the default message."""

    code: ClassVar[str] = "client_error"

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (self.__doc__ or "").split("\n", 1)[0])

    @property
    def message(self) -> str:
        """The sentence shown to people."""
        return str(self)


@dataclass(frozen=True, slots=True)
class SpecError:
    """One thing wrong with a job specification.

    `path` names the key ("portal.meshes.trainers", empty for the whole file); `line` counts from
    1 and is None where the specification did not come as text; `suggestion` is the nearest valid
    spelling, if there is one. `document`: which of several specifications it is in, from 0.
    `column`, from 1, is where in the line it begins, and `end_column` the first one after it; None
    where it is unknown.
    """

    path: str
    line: int | None
    code: str
    message: str
    suggestion: str | None = None
    document: int = 0
    column: int | None = None
    end_column: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the error as REST sends it."""
        return {
            "path": self.path,
            "line": self.line,
            "column": self.column,
            "end_column": self.end_column,
            "code": self.code,
            "message": self.message,
            "suggestion": self.suggestion,
        }

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        return f"{where}{self.message}"


class InvalidSpecErrors(ClientError):  # noqa: N818 - it carries many
    """The job specification has errors."""

    code = "invalid_spec"

    def __init__(self, errors: Sequence[SpecError]) -> None:
        super().__init__("\n".join(str(error) for error in errors))
        self.errors = list(errors)


class ArchiveError(ClientError):
    """The archive cannot be used."""

    code = "invalid_upload"


class ArchiveTooLargeError(ArchiveError):
    """The archive is larger, or unpacks to more, than is accepted."""

    code = "upload_too_large"


class NotSignedInError(ClientError):
    """You are not signed in, or the portal no longer accepts the token. Run `mportal login`."""

    code = "not_signed_in"


class UnreachableError(ClientError):
    """The portal did not answer."""

    code = "unreachable"


class UnprovedPortalError(UnreachableError):
    """The server has not proved that it is the portal; no token was sent."""

    code = "unproved_portal"


class UnexpectedAnswerError(ClientError):
    """The answer is not that of a portal of this version."""

    code = "unexpected_answer"


class UnknownNameError(ClientError):
    """The portal has no object of this name or number."""

    code = "not_found"


class RefusedError(ClientError):
    """The portal refused the request."""

    code = "refused"

    def __init__(
        self, message: str, *, status: int, portal_code: str, data: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.portal_code = portal_code
        self.data = data or {}


class InvalidValueError(RefusedError):
    """A value in the request is invalid."""


class MissingError(RefusedError):
    """The named object does not exist, or you may not see it."""


class ForbiddenError(RefusedError):
    """The role or the token does not allow this."""


class ConflictError(RefusedError):
    """The request does not fit the present state."""
