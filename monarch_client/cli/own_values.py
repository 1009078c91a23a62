"""The values of a job on its way to a portal, and the file and line of each."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from monarch_client.cli.tables import print_table
from monarch_client.cli.terminal import say
from monarch_client.spec.locations import SourceKind, kind_of_source
from monarch_client.spec.project_files import Default, ProjectDefaults, flat_values
from monarch_client.spec.text_edits import set_key

if TYPE_CHECKING:
    from monarch_client.errors import SpecError
    from monarch_client.spec import JobSpec
    from monarch_client.spec.documents import Document

COMMAND_LINE = "the command line"
_LONGEST = 60
_PROGRAM = ".py"


class OwnValues:
    """A specification of a file or command line, completed with the defaults of its folder."""

    def __init__(self, document: Document, source_name: str, defaults: ProjectDefaults) -> None:
        self._source_name = source_name
        self._own = document
        self.has_defaults = bool(defaults.values)
        text, self._used = defaults.completed(document.text)
        self.document = document
        if self._used:
            self.document = replace(document, text=text, source=document.source or document.text)

    def default_at(self, path: str) -> Default | None:
        """Return the default that an error at `path` is about; None: it is about another value."""
        found = [
            key for key in self._used if path == key or path.startswith((f"{key}.", f"{key}["))
        ]
        return self._used[max(found, key=len)] if found else None

    def show(self, text: str, options: Collection[str]) -> None:
        """Print each value of `text`, with where it comes from; `options` set these keys."""
        print_table(["KEY", "VALUE", "FROM"], list(self._rows(text, options)), wraps=True)
        say("")

    def _rows(self, text: str, options: Collection[str]) -> Iterator[list[str]]:
        for path, value, line in flat_values(text):
            key = ".".join(path)
            if key in options:
                where = COMMAND_LINE
            elif key in self._used:
                where = self._used[key].where
            else:
                where = self._position(line, text)
            yield [key, _shown(value), where]

    def _position(self, line: int | None, text: str) -> str:
        if self._source_name == COMMAND_LINE or line is None:
            return self._source_name
        return f"{self._source_name}:{self.document.line_of(line, text)}"


def misplaced(error: SpecError, default: Default) -> str:
    """Return an error about a value that a project file gives."""
    return f"{default.where}: {error.message}"


def without_folders(text: str, spec: JobSpec) -> str:
    """Return the specification without the folders of this machine: a plan needs none of them."""
    if isinstance(spec.workdir, str) and _is_local(spec.workdir):
        text = set_key(text, "workdir", None)
    mounts: Mapping[str, Any] = spec.file_mounts
    kept = {target: source for target, source in mounts.items() if not _is_local(source)}
    return text if kept == mounts else set_key(text, "file_mounts", kept)


def command_words(command: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """Return the command; a Python file of the folder is run by Python."""
    program = command[0]
    is_here = program.endswith(_PROGRAM) and not program.startswith(("/", "./", "~"))
    return ("python", *command) if is_here and (folder / program).is_file() else command


def _is_local(source: Any) -> bool:
    return isinstance(source, str) and kind_of_source(source) is SourceKind.LOCAL


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
