"""Openings of docstrings, phrases and parts of names that the glossary replaces.

`python -m tests.architecture.plain_english` prints every offender of the files and folders that
it gets, by default of the repository, and fails if there is one.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.architecture.source import ROOT, at, nodes_of, repository_files, text_of

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
# Parts of names that say less than the word of the glossary.
NAME_PARTS = re.compile(
    r"(?:^|_)(?:told|wish|wishes|nobody|somebody|anybody|everybody|whoever)(?=_|$)"
    r"|(?:Told|Wish|Nobody|Somebody)(?![a-z])"
)
ACCOUNT = "nobody"  # of the system
MESH_FIELD = "told"  # of REST: the state of a mesh's node that was reported last
# A template looks up the fields of REST's answers, whose names are an interface.
LOOKUP = re.compile(r"\b[a-z_]+(?:\.[a-z_]+)+\b")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
BOOLEAN = re.compile(r"\b(?:bool|TypeGuard|TypeIs)\b")


@cache
def texts() -> tuple[Path, ...]:
    """List the files whose prose people read; a released version's notes stay as they were."""
    own = {Path(__file__), Path(__file__).with_name("test_plain_english.py")}
    return tuple(
        path
        for path in repository_files()
        if path.suffix in SUFFIXES
        and path not in own
        and ("migrations" not in path.parts)
        and (len(parts := path.relative_to(ROOT).parts) == 1 or parts[0] in SCANNED)
    )


def offenders(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, what is wrong) of everything in the file that breaks a rule."""
    yield from openings(path)
    yield from phrases(path)
    yield from names(path)


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


def names(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line, what is wrong) of each name in a Python file with a part that is a riddle."""
    if path.suffix != ".py":
        return
    for each in tokenize.generate_tokens(io.StringIO(text_of(path)).readline):
        is_interface = each.string == ACCOUNT or (each.string == MESH_FIELD and "mesh" in path.name)
        if each.type != tokenize.NAME or is_interface:
            continue
        if match := NAME_PARTS.search(each.string):
            yield each.start[0], f"write another word than {match[0]}: {each.string}"


def main(arguments: list[str]) -> int:
    """Print the offenders of the named files and folders, by default all; return their number."""
    chosen = [Path(name).resolve() for name in arguments or [str(ROOT)]]
    found = [
        at(path, line, wrong)
        for path in texts()
        if any(path.is_relative_to(each) for each in chosen)
        for line, wrong in offenders(path)
    ]
    print("\n".join(found) or "no offenders")  # noqa: T201
    return len(found)


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
