"""Every error the portal raises on purpose: a stable code, an HTTP status, what to do about it.

PortalError
├── NotFoundError                 404 not_found
├── PermissionDeniedError         403 permission_denied
├── InvalidSpecError              422 invalid_spec
├── InvalidUploadError            422 invalid_upload
├── UploadTooLargeError           413 upload_too_large
├── InvalidCursorError            400 invalid_cursor
├── ConflictError                 409 conflict
│   ├── IllegalMoveError          409 illegal_move
│   ├── StaleJobError             409 stale_job
│   ├── JobNotFinalError          409 job_not_final
│   ├── JobAlreadyFinalError      409 job_already_final
│   └── IdempotencyConflictError  422 idempotency_conflict
├── AttemptClosedError            410 attempt_closed
├── InvalidFrameError             400 invalid_frame
└── BackendError                  502 backend_error
    ├── BackendUnavailableError   503 backend_unavailable
    ├── NoCapacityError           409 no_capacity
    └── NotYetGoneError           409 not_yet_gone
"""

from __future__ import annotations

from typing import Any, ClassVar


class PortalError(Exception):
    """Something a caller can be told. The docstring is the default message."""

    code: ClassVar[str] = "error"
    http_status: ClassVar[int] = 500

    def __init__(self, message: str = "", **data: Any) -> None:
        super().__init__(message or (self.__doc__ or "").split("\n", 1)[0])
        self.data = data

    @property
    def message(self) -> str:
        """The sentence shown to people."""
        return str(self)


class NotFoundError(PortalError):
    """There is nothing here, or you may not see it."""

    code = "not_found"
    http_status = 404


class PermissionDeniedError(PortalError):
    """Your role in this project does not allow this. Ask one of its maintainers."""

    code = "permission_denied"
    http_status = 403


class InvalidSpecError(PortalError):
    """The job specification has errors."""

    code = "invalid_spec"
    http_status = 422


class InvalidUploadError(PortalError):
    """The uploaded archive cannot be used."""

    code = "invalid_upload"
    http_status = 422


class UploadTooLargeError(PortalError):
    """The uploaded archive is larger than this portal accepts."""

    code = "upload_too_large"
    http_status = 413


class InvalidCursorError(PortalError):
    """The cursor is not one this endpoint gave out."""

    code = "invalid_cursor"
    http_status = 400


class ConflictError(PortalError):
    """The request does not fit the present state."""

    code = "conflict"
    http_status = 409


class IllegalMoveError(ConflictError):
    """A job cannot go from its status to that one."""

    code = "illegal_move"


class StaleJobError(ConflictError):
    """The job changed in the meantime; read it again."""

    code = "stale_job"


class JobNotFinalError(ConflictError):
    """The job has not ended yet; cancel it first."""

    code = "job_not_final"


class JobAlreadyFinalError(ConflictError):
    """The job has already ended."""

    code = "job_already_final"


class IdempotencyConflictError(ConflictError):
    """This Idempotency-Key was used before with another body; use a new key."""

    code = "idempotency_conflict"
    http_status = 422


class AttemptClosedError(PortalError):
    """This attempt has ended and takes no more frames."""

    code = "attempt_closed"
    http_status = 410


class InvalidFrameError(PortalError):
    """A frame could not be read."""

    code = "invalid_frame"
    http_status = 400


class BackendError(PortalError):
    """The backend answered with an error."""

    code = "backend_error"
    http_status = 502


class BackendUnavailableError(BackendError):
    """The backend is not enabled here, or cannot be reached."""

    code = "backend_unavailable"
    http_status = 503


class NoCapacityError(BackendError):
    """The backend has no room for this job now; it will be tried again."""

    code = "no_capacity"
    http_status = 409


class NotYetGoneError(BackendError):
    """The cluster is still going down; ask again."""

    code = "not_yet_gone"
    http_status = 409
