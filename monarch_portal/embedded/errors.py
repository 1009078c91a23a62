"""The errors that keep an embedded server from starting; each message says what to do."""


class EmbeddedError(Exception):
    """A part of the embedded set-up can't be used as it is."""


class ServerStartError(EmbeddedError):
    """A server ended or stayed silent while starting; the message holds the end of its log."""


class DataVersionError(EmbeddedError):
    """The data was written by another major version of PostgreSQL."""


class UnreachableHomeError(EmbeddedError):
    """The servers' account can't get to the installation's directory."""
