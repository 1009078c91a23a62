"""Code in how-tos, tutorials and the README: files are those of `examples`, commands exist."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click

from tests.architecture.source import ROOT, at, repository_files, text_of
from tests.architecture.test_documentation import commands

EXAMPLES = ROOT / "examples"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`(mportal [a-z][^`]*)`")
COMMAND = re.compile(r"^(?:\$ )?(?:\S*/)?(mportal [a-z].*)$", re.MULTILINE)
ENDS = re.compile(r"\s(?:\||&&|>|;|#)\s.*|[)\]]?$")
HELP = {"--help"}


def documents() -> list[Path]:
    """List the documents that teach."""
    folders = (ROOT / "docs" / "howto", ROOT / "docs" / "tutorial")
    return [ROOT / "README.md", *sorted(page for each in folders for page in each.glob("*.md"))]


@cache
def examples() -> dict[str, str]:
    """Return the texts of the examples by path; a notebook's are those of its cells."""
    texts = {}
    for path in EXAMPLES.rglob("*"):
        if path.suffix in {".py", ".yaml"}:
            texts[path.relative_to(ROOT).as_posix()] = text_of(path)
        elif path.suffix == ".ipynb":
            cells = ["".join(cell["source"]) for cell in json.loads(text_of(path))["cells"]]
            texts[path.relative_to(ROOT).as_posix()] = "\n".join(cells)
    return texts


def blocks() -> Iterator[tuple[Path, int, str, str]]:
    """Yield (document, line, language, code) of each block."""
    for page in documents():
        text = text_of(page)
        for found in BLOCK.finditer(text):
            yield page, text.count("\n", 0, found.start()) + 1, found[1], found[2]


def is_whole(language: str, code: str) -> bool:
    """Whether a block is a file: a specification with its `run`, or a program that can run."""
    if language == "yaml":
        return all(re.search(f"^{key}:", code, re.MULTILINE) for key in ("name", "run"))
    if language != "python" or not re.match(r"(?:from|import) ", code):
        return False
    tree = ast.parse(code)
    has_gap = any(isinstance(each, ast.Constant) and each.value is ... for each in ast.walk(tree))
    return not has_gap and any(
        not isinstance(each, ast.Import | ast.ImportFrom) for each in tree.body
    )


def test_a_file_in_a_document_is_one_of_the_examples() -> None:
    known = list(examples().values())
    offenders = [
        at(page, line, f"shows a {language} file that examples/ does not have")
        for page, line, language, code in blocks()
        if is_whole(language, code) and not any(code.strip() in text for text in known)
    ]
    assert not offenders, "\n".join(offenders)


def test_every_example_is_run_by_a_test() -> None:
    texts = [
        text_of(path)
        for path in repository_files()
        if path.suffix == ".py"
        and path.is_relative_to(ROOT / "tests")
        and not path.is_relative_to(ROOT / "tests" / "architecture")
    ]
    names = {path.relative_to(EXAMPLES).parts[0] for path in EXAMPLES.rglob("*") if path.is_file()}
    silent = [
        name
        for name in sorted(names)
        if not any(re.search(rf'["/]{name}["/]', text) for text in texts)
    ]
    assert not silent, f"no test names examples/{silent}"


def written_commands() -> Iterator[tuple[Path, int, str]]:
    """Yield (document, line, command line) of each use of `mportal`."""
    for page in documents():
        text = text_of(page)
        for pattern in (COMMAND, INLINE):
            for found in pattern.finditer(text):
                yield page, text.count("\n", 0, found.start()) + 1, found[1]


def words_of(line: str) -> list[str]:
    """Return the words of a command line, of which a document may show the first of several."""
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return line.split()


def complaint(line: str, known: dict[str, click.Command]) -> str:
    """Return what is wrong with a command line; "" if nothing is, or it is a pattern of several."""
    words = words_of(ENDS.sub("", line.rstrip("\\")))
    name = next(
        (" ".join(words[:n]) for n in range(len(words), 1, -1) if " ".join(words[:n]) in known), ""
    )
    if not name:
        is_group = any(each.startswith(f"{' '.join(words)} ") for each in known)
        is_pattern = any("|" in word for word in words[:3])
        return "" if is_group or is_pattern else f"there is no command `{line}`"
    if known[name].context_settings.get("ignore_unknown_options"):
        return ""  # the rest is of the program that it starts
    options = {text for each in known[name].params for text in (*each.opts, *each.secondary_opts)}
    rest = words[len(name.split()) :]
    rest = rest[: rest.index("--")] if "--" in rest else rest
    used = {word.partition("=")[0] for word in rest if re.match(r"--?[a-zA-Z]", word)}
    unknown = {
        word
        for word in used - options - HELP
        # Short options may be written together, and with their value.
        if word.startswith("--") or word[:2] not in options
    }
    return f"`{name}` has no option {sorted(unknown)}" if unknown else ""


def test_every_command_in_a_document_exists_with_its_options() -> None:
    known = dict(commands())
    offenders = [
        at(page, line, wrong)
        for page, line, command in written_commands()
        if (wrong := complaint(command, known))
    ]
    assert not offenders, "\n".join(offenders)
