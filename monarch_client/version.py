"""The one place that holds the version of client and portal."""

__version__ = "0.1.0"
