"""Limits that the runner keeps and the portal enforces."""

# Bytes of one request: frames, unpacked, or a specification. A larger body is answered with 413.
MAX_BODY_BYTES = 1024 * 1024
