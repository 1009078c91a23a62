"""The texts that the portal prints in a terminal when it starts and for its status."""

from __future__ import annotations

from monarch_portal.embedded.home import Home
from monarch_portal.embedded.status import PortalStatus


def starting(home: Home) -> str:
    """Return the first line of a start."""
    if home.postgres.data.exists():
        return "Starting the portal ..."
    return "Starting the portal for the first time: making its database ..."


def runs_already(home: Home) -> str:
    """Describe, at a second start, where the portal runs and what to do next."""
    return (
        f"The portal already runs at {home.url}\n"
        "`make stop` ends it; `.venv/bin/python manage.py sign_in_link` prints a sign-in link."
    )


def running(home: Home, sign_in_path: str, *, stays: bool) -> str:
    """Describe the running portal: address, sign-in link, data directory, how to stop it."""
    lines = [
        ("Monarch portal", home.url),
        ("Sign in, once", home.url + sign_in_path),
        ("Data and logs", str(home.path)),
        ("To stop", "Ctrl-C here, or `make stop`. Jobs go on." if stays else "make stop"),
    ]
    return "\n" + "\n".join(f"  {label:<16}{value}" for label, value in lines) + "\n"


def open_sockets() -> str:
    """Return a warning that this kernel does not keep jobs of different users apart."""
    return (
        "  Warning: this kernel is older than Linux 6.12. A job can run code in another user's job "
        "here.\n  Let only users who trust each other submit, or set MPORTAL_LOCAL_BACKEND=0.\n"
    )


def status(found: PortalStatus) -> str:
    """Return a line for each process with its memory, and the sum."""
    if not found.running:
        return f"No portal runs here. Data: {found.home}"
    lines = [f"Running at {found.url}", f"Data: {found.home}"]
    lines += [
        f"  {one.name:<12}{one.pid:>8}{one.memory_mb:>9.1f} MB  {one.note}".rstrip()
        for one in found.processes
    ]
    return "\n".join([*lines, f"  {'together':<20}{found.memory_mb:>9.1f} MB"])
