"""The examples at the end of a command's help."""

from __future__ import annotations

# click keeps the lines of a paragraph that begins so.
_AS_IT_IS = "\b\n"


def examples(*lines: str) -> str:
    """Return the epilog of a command with these examples."""
    return f"{_AS_IT_IS}Examples:\n" + "\n".join(f"  {line}" for line in lines)
