"""Django's PostgreSQL backend over a pool that knows its dead (see `base`)."""
