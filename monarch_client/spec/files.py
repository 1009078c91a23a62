"""Text of files that people write: specifications, templates and values. It must be UTF-8."""

from __future__ import annotations

from pathlib import Path

from monarch_client.errors import InvalidSpecErrors, SpecError
from monarch_client.spec.findings import SpecCode


class InvalidFileError(InvalidSpecErrors):
    """A file has errors; every line of the message names the file and the line."""

    def __init__(self, file: str, errors: list[SpecError]) -> None:
        super().__init__(errors)
        self.file = file

    def __str__(self) -> str:
        return "\n".join(_located(self.file, each) for each in self.errors)


def text_of_file(path: Path, name: str = "") -> str:
    """Return the text of a file, which messages call `name`. OSError; InvalidFileError."""
    return text_in(path.read_bytes(), name or str(path))


def text_in(content: bytes, name: str) -> str:
    """Return the text in the bytes of a file, with line ends of Unix and without a byte order mark.

    InvalidFileError: it is not UTF-8.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"byte 0x{content[error.start]:02x} is not UTF-8. Save the file as UTF-8."
        found = SpecError(
            "", line_of_byte(content, error.start), SpecCode.BAD_CHARACTER.value, message
        )
        raise InvalidFileError(name, [found]) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def line_of_byte(content: bytes, place: int) -> int:
    """Return the line of a byte, counted from 1."""
    return content.count(b"\n", 0, place) + 1


def _located(file: str, error: SpecError) -> str:
    where = f"{file}:{error.line}" if error.line else file
    return f"{where}: {error.message}"
