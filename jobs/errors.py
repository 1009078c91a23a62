"""Every error the portal raises on purpose: a stable code, an HTTP status, what to do about it.

PortalError
├── NotFoundError                 404 not_found
├── PermissionDeniedError         403 permission_denied
├── InvalidSpecError              422 invalid_spec
├── InvalidUploadError            422 invalid_upload
├── InvalidLabelsError            422 invalid_labels
├── InvalidZoneError              422 invalid_zone
├── InvalidViewError              422 invalid_view
├── UploadTooLargeError           413 upload_too_large
├── InvalidCursorError            400 invalid_cursor
├── InvalidPatternError           400 invalid_pattern
├── SearchTooSlowError            400 search_too_slow
├── ConflictError                 409 conflict (so is ZoneGoneError, in policies.timetables)
│   ├── IllegalMoveError          409 illegal_move
│   ├── StaleJobError             409 stale_job
│   ├── JobNotFinalError          409 job_not_final
│   ├── JobAlreadyFinalError      409 job_already_final
│   ├── ClusterGoneError          409 cluster_gone
│   ├── OverLimitError            409 over_limit
│   └── IdempotencyConflictError  422 idempotency_conflict
├── AttemptClosedError            410 attempt_closed
├── InvalidFrameError             400 invalid_frame
├── TooManyStreamsError           429 too_many_streams
├── TooManyTriesError             429 too_many_tries
├── TooManySessionsError          429 too_many_sessions
├── SessionRefusedError           401 session_refused
├── SessionEndedError             410 session_ended
├── PortalBusyError               503 portal_busy
├── DatabaseUnavailableError      503 database_unavailable
├── LogStoreAwayError             503 log_store_away
├── InvalidCloudError             422 invalid_cloud
├── InvalidSecretError            422 invalid_secret
├── InvalidSettingsError          422 invalid_settings (in actions.queue_input)
├── SecretsUnavailableError       503 secrets_unavailable
├── StorageFullError              507 storage_full
│   └── FramesPostponedError      503 storage_full
└── BackendError                  502 backend_error
    ├── BackendUnavailableError   503 backend_unavailable
    │   └── StillLookingError     503 still_looking
    ├── NoCapacityError           409 no_capacity
    ├── NotYetGoneError           409 not_yet_gone
    └── SecretMissingError        409 secret_missing
"""

from __future__ import annotations

from typing import Any, ClassVar

# Of a specification, in one line.
_MOST_ERRORS = 3


class PortalError(Exception):
    """An error that is reported to the caller. The docstring is the default message."""

    code: ClassVar[str] = "error"
    http_status: ClassVar[int] = 500

    def __init__(self, message: str = "", **data: Any) -> None:
        super().__init__(message or (self.__doc__ or "").split("\n", 1)[0])
        self.data = data

    @property
    def message(self) -> str:
        """The sentence shown to people."""
        return str(self)

    @property
    def summary(self) -> str:
        """The message in one line; of a specification, its first errors instead of their number."""
        errors = self.data.get("errors") or [{"message": self.message}]
        more = f" And {len(errors) - _MOST_ERRORS} more." if len(errors) > _MOST_ERRORS else ""
        return " ".join(row["message"] for row in errors[:_MOST_ERRORS]) + more


class NotFoundError(PortalError):
    """The requested object does not exist, or you may not see it."""

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


class InvalidLabelsError(PortalError):
    """The labels cannot be used."""

    code = "invalid_labels"
    http_status = 422


class InvalidZoneError(PortalError):
    """A time zone that does not exist."""

    code = "invalid_zone"
    http_status = 422


class InvalidViewError(PortalError):
    """The view cannot be saved."""

    code = "invalid_view"
    http_status = 422


class UploadTooLargeError(PortalError):
    """The uploaded archive is larger than this portal accepts."""

    code = "upload_too_large"
    http_status = 413


class InvalidCursorError(PortalError):
    """The cursor is not one this endpoint gave out."""

    code = "invalid_cursor"
    http_status = 400


class InvalidPatternError(PortalError):
    """The pattern is not a regular expression that this portal accepts."""

    code = "invalid_pattern"
    http_status = 400


class SearchTooSlowError(PortalError):
    """The pattern takes too long on this log. Make it simpler, or search for plain text."""

    code = "search_too_slow"
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


class ClusterGoneError(ConflictError):
    """The cluster was terminated, or is being terminated."""

    code = "cluster_gone"


class OverLimitError(ConflictError):
    """The value is more than an administrator of the installation allows."""

    code = "over_limit"


class IdempotencyConflictError(ConflictError):
    """The Idempotency-Key was used before with another body; use a new key."""

    code = "idempotency_conflict"
    http_status = 422


class AttemptClosedError(PortalError):
    """The attempt has ended and takes no more frames."""

    code = "attempt_closed"
    http_status = 410


class InvalidFrameError(PortalError):
    """A frame could not be read."""

    code = "invalid_frame"
    http_status = 400


class StorageFullError(PortalError):
    """The portal's disk is full. Running jobs go on; try again when there is room."""

    code = "storage_full"
    http_status = 507
    # Seconds, sent to the client as Retry-After.
    retry_after: ClassVar[int] = 30


class FramesPostponedError(StorageFullError):
    """The portal's disk is full; keep the frames and send them again."""

    http_status = 503
    retry_after = 5


class TooManyStreamsError(PortalError):
    """You have as many live streams open as one user may. Close some, or poll."""

    code = "too_many_streams"
    http_status = 429
    retry_after = 5


class TooManyTriesError(PortalError):
    """Too many tries have failed. Wait before the next one."""

    code = "too_many_tries"
    http_status = 429

    def __init__(self, message: str = "", *, retry_after: int = 60, **data: Any) -> None:
        super().__init__(message, **data)
        self.retry_after = retry_after


class TooManySessionsError(PortalError):
    """The job, or you, have as many gateway sessions as are allowed. End one first."""

    code = "too_many_sessions"
    http_status = 429
    retry_after = 5


class SessionRefusedError(PortalError):
    """The gateway does not know this ticket or secret. Request a new session."""

    code = "session_refused"
    http_status = 401


class SessionEndedError(PortalError):
    """The gateway session has ended. Request a new one."""

    code = "session_ended"
    http_status = 410


class PortalBusyError(PortalError):
    """The portal has no room for this now. Try again in a moment."""

    code = "portal_busy"
    http_status = 503
    retry_after = 5


class DatabaseUnavailableError(PortalError):
    """The portal's database does not answer now. Try again; a change may have been made already."""

    code = "database_unavailable"
    http_status = 503
    retry_after = 2


class LogStoreAwayError(PortalError):
    """The store with the older parts of this log does not answer now. Try again in a moment."""

    code = "log_store_away"
    http_status = 503
    retry_after = 10


class InvalidCloudError(PortalError):
    """The credentials of the cloud can't be used. The previous ones are unchanged."""

    code = "invalid_cloud"
    http_status = 422


class InvalidSecretError(PortalError):
    """A secret must have the name of an environment variable, and a value."""

    code = "invalid_secret"
    http_status = 422


class SecretsUnavailableError(PortalError):
    """The portal has no key to seal secrets with. Its administrator sets MPORTAL_SECRET_KEYS."""

    code = "secrets_unavailable"
    http_status = 503


class BackendError(PortalError):
    """The backend answered with an error."""

    code = "backend_error"
    http_status = 502


class BackendUnavailableError(BackendError):
    """The backend is not enabled here, or cannot be reached."""

    code = "backend_unavailable"
    http_status = 503


class StillLookingError(BackendUnavailableError):
    """The backend has been asked and has not answered yet; ask again in a moment."""

    code = "still_looking"


class NoCapacityError(BackendError):
    """The backend has no room for this job now; it will be tried again."""

    code = "no_capacity"
    http_status = 409


class NotYetGoneError(BackendError):
    """The cluster is still being terminated; try again."""

    code = "not_yet_gone"
    http_status = 409


class SecretMissingError(BackendError):
    """A secret that the job names is not in its project any more."""

    code = "secret_missing"
    http_status = 409
