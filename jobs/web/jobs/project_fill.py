"""The specification of an uploaded folder, by the project files in it."""

from __future__ import annotations

from collections.abc import Mapping

from monarch_client.errors import SpecError
from monarch_client.spec.documents import is_several
from monarch_client.spec.files import InvalidFileError
from monarch_client.spec.form_edits import field_of
from monarch_client.spec.project_files import (
    PORTAL_YAML,
    PROJECT_FILES,
    defaults_of,
)
from monarch_client.spec.text_edits import set_key


def has_project_files(posted: Mapping[str, str]) -> bool:
    """Whether the page sent the text of a project file."""
    return any(name in posted for name in PROJECT_FILES)


def filled_from(posted: Mapping[str, str], source: str) -> str:
    """Return the specification that the sent project files give, with the folder as `workdir`.

    Where they give no command, that of `source` stays. InvalidFileError: a file is wrong.
    """
    texts = {name: posted[name].replace("\r\n", "\n") for name in PROJECT_FILES if name in posted}
    if is_several(texts.get(PORTAL_YAML, "")):
        problem = "It has several jobs; the form fills in one. Copy them into the editor."
        raise InvalidFileError(PORTAL_YAML, [SpecError("", None, "several", problem)])
    defaults = defaults_of(texts)
    own = set_key(texts.get(PORTAL_YAML, ""), "workdir", posted.get("workdir", ""))
    text, _ = defaults.completed(own)
    if field_of(text, "run") is None and (command := field_of(source, "run")) is not None:
        text = set_key(text, "run", command)
    return text
