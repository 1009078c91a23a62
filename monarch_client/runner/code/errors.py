"""Errors of code that is sent to a node."""

from __future__ import annotations


class CodeError(Exception):
    """Code that this node cannot take; the message contains the reason."""


class FormatError(CodeError):
    """A block that is not what its name promises, or a manifest that is not allowed."""


class BlockMissingError(CodeError):
    """A block that the store does not hold."""

    def __init__(self, digest: str) -> None:
        super().__init__(f"the block {digest[:12]} is missing; sync again to send it")
        self.digest = digest
