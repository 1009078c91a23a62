"""Openings of docstrings and phrases that the glossary replaces, counted folder by folder.

`python -m tests.architecture.plain_english` prints every offender of the files and folders that
it gets; without any it rewrites the allow-list `plain_english.txt`, and refuses to raise a total.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.architecture.source import ROOT, at, nodes_of, repository_files, text_of

ALLOWED = Path(__file__).with_name("plain_english.txt")
SCANNED = ("jobs", "monarch_client", "monarch_portal", "docs", "templates", "bench", "tests")
SUFFIXES = {".py", ".md", ".html", ".js"}

# A function's docstring opens with one of these, one a line. Add a verb when a docstring needs it.
VERBS = frozenset(Path(__file__).with_name("verbs.txt").read_text(encoding="utf-8").split())
# No docstring opens with these, of a module, a class or a function.
RIDDLES = re.compile(
    r"what|who|whom|whose|why|which|where|when|whether|how|whatever|whoever|that|those|this|these"
    r"|there|it|its|they|their|of|by|in|on|from|for|with|under|as|at|until|if|without|everything"
    r"|something|somebody|nobody|everybody|nothing|no|none|so"
)
PHRASES = re.compile(
    r"""
      \b(?:tells?|told|telling)\b(?!\ apart)
    | \b(?:is|are|was|were)\ said\b | \b(?:say|says|said)\ so\b | \bin\ words\b
    | \b(?:ask|asks|asked|asking)\ for\b
    | \bmend(?:s|ed|ing)?\b | \bstands\b | \blies?\b
    | \b(?:whose|its|their)\ turns?\b | \bhad\ its\ turn\b
    | \b(?:give|gives|gave|given|giving)\ way\b
    | \b(?:is|are|was|were)\ gone\b | \b(?:goes|go|going|went)\ down\b | \blet(?:s|ting)?\ go\ of\b
    | \bwithout\ a\ word\b | \blast\ words?\b
    | \bplaces?\ (?:that\ )?(?:is|are|was)\ held\b | \bplace\ held\b
    | \bkept\ clusters?\b | \bclusters?\ (?:that|which)\ (?:is|are|was|were)\ kept\b
    | \bunit-hours?\b | \bcounts?\ for\b | \bwhat\ there\ is\ (?:of|for)\b
    | \b(?:those|he|they|one|them)\ who\b | \bthe\ same\ of\b
    | \b(?:some|any|every|no)body\b | \bwhoever\b
    | \b(?:see|sees|seen)\ to\ it\b | \bfor\ want\ of\b | \bbudget\ of\ the\ month\b
    | \bshall\b | \bone's\b | \b(?:a|this)\ moment\ ago\b
    | \b(?:colour|behaviour|neighbour|honour|favour|licence|centre|defence|whilst|amongst)\w*
    | \b(?:recogni|organi|authori|normali|seriali|initiali|prioriti|summari|minimi|utili)s\w*
    """,
    re.IGNORECASE | re.VERBOSE,
)
# What a document shows of code and output is not its prose, and a link's target is an address.
CODE = re.compile(r"^```.*?^```|`[^`\n]+`|\]\([^)]*\)", re.MULTILINE | re.DOTALL)
# A template looks up the fields of REST's answers, whose names are an interface.
LOOKUP = re.compile(r"\b[a-z_]+(?:\.[a-z_]+)+\b")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
BOOLEAN = re.compile(r"\b(?:bool|TypeGuard|TypeIs)\b")


class Count(NamedTuple):
    """The numbers of forbidden openings and phrases in a file."""

    openings: int
    phrases: int


NONE = Count(0, 0)


@cache
def texts() -> tuple[Path, ...]:
    """List the files whose prose people read; a released version's notes stay as they were."""
    own = {Path(__file__), Path(__file__).with_name("test_plain_english.py"), ALLOWED}
    return tuple(
        path
        for path in repository_files()
        if path.suffix in SUFFIXES
        and path not in own
        and ("migrations" not in path.parts)
        and (len(parts := path.relative_to(ROOT).parts) == 1 or parts[0] in SCANNED)
    )


def count(path: Path) -> Count:
    """Count the file's forbidden openings and phrases."""
    return Count(len(list(openings(path))), len(list(phrases(path))))


def openings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, what is wrong) of each docstring of a Python file that opens as it must not."""
    if path.suffix != ".py":
        return
    for node in nodes_of(path):
        if not isinstance(node, DOCUMENTED) or not (text := ast.get_docstring(node)):
            continue
        first = text.splitlines()[0]
        if wrong := wrong_opening(node, text.split()[0].strip(".,;:").lower()):
            yield getattr(node, "lineno", 1), f"{wrong}: {first}"


def wrong_opening(node: ast.AST, word: str) -> str:
    """Describe why a docstring of `node` must not open with `word`; "" if it may."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_property(node):
        if word == "whether":
            returned = ast.unparse(node.returns) if node.returns else ""
            return "" if BOOLEAN.search(returned) else "whether, but no bool"
        return "" if word in VERBS else "no imperative verb"
    if word == "whether" and is_property(node):
        return ""
    if isinstance(node, ast.ClassDef) and word.endswith("s") and word.removesuffix("s") in VERBS:
        return "no noun phrase"
    return "no noun phrase" if RIDDLES.fullmatch(word) else ""


def is_property(node: ast.AST) -> bool:
    """Whether the node is a property, whose docstring is a noun phrase."""
    decorators = getattr(node, "decorator_list", [])
    return any(ast.unparse(each).endswith("property") for each in decorators)


def phrases(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, phrase) of each forbidden phrase in the file's prose."""
    for line, text in prose(path):
        for match in PHRASES.finditer(text):
            yield line + text.count("\n", 0, match.start()), f"write another word: {match[0]}"


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of what people read: strings with spaces in code, else all but code."""
    if path.suffix == ".py":
        for node in nodes_of(path):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                yield node.lineno, node.value
    elif path.suffix == ".md":
        text = text_of(path)
        if path.name == "CHANGELOG.md":
            text = re.split(r"^## \[?\d", text, maxsplit=1, flags=re.MULTILINE)[0]
        yield 1, CODE.sub(lambda match: "\n" * match[0].count("\n"), text)
    else:
        yield 1, LOOKUP.sub("", text_of(path)) if path.suffix == ".html" else text_of(path)


def allowed() -> dict[str, Count]:
    """Read the allow-list: `openings phrases folder` a line. Of two lines of one the lower holds.

    A merge of branches that both lowered a folder leaves both lines behind.
    """
    counts: dict[str, Count] = {}
    for line in ALLOWED.read_text(encoding="utf-8").splitlines():
        opened, found, name = line.split(maxsplit=2)
        new, old = Count(int(opened), int(found)), counts.get(name)
        counts[name] = Count(*map(min, new, old)) if old else new
    return counts


@cache
def counted() -> dict[str, Count]:
    """Sum the counts of each folder; folders without an offender are left out."""
    counts: dict[str, Count] = {}
    for path in texts():
        if any(found := count(path)):
            folder = folder_of(path)
            counts[folder] = Count(*map(sum, zip(found, counts.get(folder, NONE), strict=True)))
    return counts


def folder_of(path: Path) -> str:
    """Return the first two parts of the file's folder, so that a move within it changes nothing."""
    return "/".join(path.relative_to(ROOT).parts[:-1][:2]) or "."


def total(counts: dict[str, Count]) -> Count:
    """Sum the counts of all files."""
    return Count(*map(sum, zip(*counts.values(), strict=True))) if counts else NONE


def rewrite() -> str:
    """Bring the allow-list up to date and return its totals; SystemExit if one would rise."""
    now = counted()
    sums, before = total(now), total(allowed()) if ALLOWED.exists() else total(now)
    if sums.openings > before.openings or sums.phrases > before.phrases:
        sys.exit(f"there were {before} and there are {sums}: rewrite the new ones first")
    lines = [f"{found.openings} {found.phrases} {name}\n" for name, found in sorted(now.items())]
    ALLOWED.write_text("".join(lines), encoding="utf-8")
    return f"{sums.openings} openings and {sums.phrases} phrases are left"


def main(arguments: list[str]) -> None:
    """Print the offenders of the named files and folders, or rewrite the allow-list."""
    for name in arguments:
        for path in texts():
            if path.is_relative_to(Path(name).resolve()):
                for line, wrong in (*openings(path), *phrases(path)):
                    print(at(path, line, wrong))  # noqa: T201
    if not arguments:
        print(rewrite())  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
