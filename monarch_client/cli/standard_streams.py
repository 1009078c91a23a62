"""Standard streams that the caller has closed: their numbers must not become those of files."""

from __future__ import annotations

import os
import sys

_NAMES = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def open_closed() -> None:
    """Open /dev/null in place of each closed standard stream, as OpenSSH does.

    Call it before anything is opened.
    """
    for descriptor, (name, mode) in enumerate(_NAMES):
        if not _is_open(descriptor):
            # Those with lower numbers are open: it gets the first free one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
