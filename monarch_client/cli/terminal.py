"""The only way to a terminal. What users and their programs wrote may color it, and no more.

Other escape sequences could move the cursor, rename the window or forge earlier text.
"""

from __future__ import annotations

import re
import sys
from contextlib import suppress

import click

_LAST_OF_BYTES = 0xFF
_RESET = "\x1b[0m"
# Colors; other CSI sequences, begins and ends of links (OSC 8), character set choices;
# controls, marks of text direction, lone surrogates.
_SPECIAL = re.compile(
    r"(?P<color>\x1b\[[0-9;]*m)"
    r"|(?P<sequence>\x1b\[[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b\]|\x9d)8;[^\x00-\x1f\x9c]*(?:\x07|\x1b\\|\x9c)|\x1b[ -/]+[0-~])"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)

_TOKENS = re.compile(r"\b(mp[taj]_)[A-Za-z0-9_-]{16,}")


def safe(text: str, *, colors: bool = True) -> str:
    """Make `text` safe for a terminal: keep only line ends, tabs and its own colors.

    Sequences that move or erase are left out, and links keep only their text. Other control
    characters are shown by number.
    """

    def harmless(found: re.Match[str]) -> str:
        if found["color"]:
            return found[0] if colors else ""
        return "" if found["sequence"] else _visible(found[0])

    shown = _SPECIAL.sub(harmless, text)
    return shown + _RESET if "\x1b" in shown and not shown.endswith(_RESET) else shown


def one_line(text: str) -> str:
    """Return text of others for use inside one line: no colors, no line ends."""
    return safe(" ".join(text.splitlines()).replace("\t", " "), colors=False)


def for_programs(text: str) -> str:
    """Return JSON with terminal sequences escaped as JSON does."""
    return _SPECIAL.sub(lambda found: "".join(f"\\u{ord(c):04x}" for c in found[0]), text)


def acts_on_terminals(text: str) -> bool:
    """Whether there is anything that `safe` would change."""
    return bool(_SPECIAL.search(text))


def say(text: str = "") -> None:
    """Print one or several lines to standard output."""
    click.echo(_writable(safe(text), sys.stdout.encoding))


def tell(text: str = "") -> None:
    """Print a remark on standard error, without tokens, since it may end in logs of CI.

    One that cannot be printed is lost: it does not end the command.
    """
    with suppress(OSError):
        click.echo(_writable(safe(without_tokens(text)), sys.stderr.encoding), err=True)


def without_tokens(text: str) -> str:
    """Return `text` with each token cut to its public prefix."""
    return _TOKENS.sub(r"\1...", text)


def complain(message: str) -> None:
    """Say what went wrong."""
    tell(click.style("Error: ", fg="red", bold=True) + message)


def write(text: str) -> None:
    """Put text that is safe already on standard output, without a line end."""
    click.echo(_writable(text, sys.stdout.encoding), nl=False)


def status_line(text: str) -> None:
    """Show one line in place of the one before; "" removes it. Nothing if there is no terminal."""
    if sys.stderr.isatty():
        line = _writable(safe(text, colors=False), sys.stderr.encoding)
        click.echo(f"\r{line}\x1b[K", err=True, nl=False)


def _visible(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number <= _LAST_OF_BYTES else f"\\u{number:04x}"


def _writable(text: str, encoding: str | None) -> str:
    """Replace characters that the terminal's encoding lacks by their numbers."""
    encoding = encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
