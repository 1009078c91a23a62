"""Each form in which a real shell, language or encoder writes a value is found and masked."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from jobs.logs.redaction import Redaction

# Signs that some encoder writes differently, among others.
SIGNS = " !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\t\x01\x1b\x7fäß€漢😀\u200b\xa0"
# A shell cannot hold a NUL, and a value is one line here.
_CHARS = st.one_of(
    st.sampled_from(SIGNS),
    st.sampled_from("abcXYZ019"),
    st.characters(exclude_categories=("Cs",), exclude_characters="\0\r\n"),
)
VALUES = st.text(_CHARS, min_size=6, max_size=24).filter(lambda text: text == text.strip())
# What a shell puts around a value, and what it prints before it.
_AROUND = re.compile(r"(?:declare -x |export |\+ : |\+ )?(?:MPV=)?[$'\"]*\*\*\*['\"]*")
_SHELL = 'set -x; : "$MPV"; set +x; export -p'
_BASH = (
    """
printf '%q\\n' "$MPV"; echo "${MPV@Q}"; declare -p MPV; declare -x MPV; export -p
"""
    "(PS4='+ '; " + _SHELL + ")"
)
_NODE = """
const values = JSON.parse(require("fs").readFileSync(0, "utf8"));
const forms = (v) => [encodeURIComponent(v), encodeURI(v), escape(v), JSON.stringify(v),
  new URLSearchParams([["", v]]).toString().slice(1), require("util").inspect(v)];
console.log(JSON.stringify(values.map(forms)));
"""


def python_forms(value: str) -> Iterator[str]:
    """Yield the forms that Python's encoders make of a value, without quotes around them."""
    yield value
    yield from (repr(value)[1:-1], ascii(value)[1:-1], repr(value.encode())[2:-1])
    for is_ascii in (True, False):
        form = json.dumps(value, ensure_ascii=is_ascii)[1:-1]
        yield from (form, form.replace("/", "\\/"), json.dumps(form, ensure_ascii=is_ascii)[1:-1])
    yield from (html.escape(value), html.escape(value, quote=False))
    yield re.sub("[&<>\"']", lambda found: f"&#{ord(found[0])};", value)
    yield value.encode("ascii", "xmlcharrefreplace").decode()
    for url in (quote(value), quote(value, safe=""), quote_plus(value), quote(value, "!'()*~")):
        yield url
        yield re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), url)
        yield quote(url, safe="")
    yield shlex.quote(value).removeprefix("'").removesuffix("'")
    yield from (value.encode().hex(), value.encode().hex().upper())
    yield base64.b64encode(value.encode()).decode().rstrip("=")


HOWTO = Path(__file__).parents[3] / "docs" / "howto" / "give-secrets-to-jobs.md"
# What each name in the table of pairs stands for: a command line, and the texts that hold it.
WRITERS: dict[str, list[Callable[[str], str]]] = {
    "JSON": [json.dumps, lambda text: json.dumps({"cmd": f"-H 'X: {text}"}, ensure_ascii=False)],
    "shell": [
        lambda text: shlex.join(["curl", "-H", f"X: {text}"]),
        lambda text: "curl -H 'X: " + text.replace("'", "'\\''") + "'",
    ],
    "URL": [quote, quote_plus],
    "HTML": [html.escape],
}


def pairs() -> list[tuple[str, str]]:
    """List the pairs of the table in the how-to: the inner one, and the one around it."""
    table = HOWTO.read_text().partition("| may itself be written in |")[2].partition("\n\n")[0]
    rows = [line.strip(" |").split(" | ") for line in table.splitlines()[2:]]
    return [(inner, outer) for inner, outers in rows for outer in outers.split(", ")]


@pytest.mark.parametrize(("inner", "outer"), pairs())
@settings(max_examples=60, deadline=None)
@given(value=VALUES)
def test_each_pair_of_the_how_to_is_masked(inner, outer, value):
    redaction = Redaction([value])
    for first in WRITERS[inner]:
        for then in WRITERS[outer]:
            form = then(first(value))
            before, mask, after = redaction.text(form).partition("***")
            # Only what is around the value stays, with a quote on each side and its escapes.
            assert mask, form
            assert len(before + after) <= len(then(first(" "))) + 8, (form, before, after)


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_what_an_encoder_of_python_writes_is_masked(value):
    redaction = Redaction([value])
    for form in python_forms(value):
        shown = redaction.text(f"<{form}>")
        assert re.fullmatch(r"<\*\*\*[A-Za-z0-9+/]?>", shown), (form, shown)


@settings(max_examples=60, deadline=None)
@given(value=VALUES, before=st.sampled_from(["value", "id=a", "1", "cafe", "x", "e" * 13]))
def test_hexadecimal_is_masked_behind_any_digit_and_from_any_digit_on(value, before):
    redaction, digits = Redaction([value]), value.encode().hex()
    shown = redaction.text(f"{before}{digits} {before}{digits}x")
    # Digits before it may be masked too.
    first, second, after = shown.split("***")
    assert before.startswith(first) and f" {before}".startswith(second) and after == "x", shown
    for cut in range(1, len(digits) - 12):
        assert redaction.excerpt(f"{digits[cut:]}\n{digits[:-cut]}") == "***\n***"


def shell_lines(shell: str, script: str, value: str, locale: str) -> list[str]:
    """List the lines that the shell prints about the variable MPV."""
    environment = {"MPV": value, "LC_ALL": locale, "PATH": "/usr/bin:/bin"}
    command = [shell, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    lines = (done.stdout + done.stderr).decode(errors="surrogateescape").split("\n")
    others = re.compile(
        r"declare -x (?:LC_ALL|PATH|PWD|OLDPWD|SHLVL|_)\b|export (?:LC|PA|PW|OLD)|\+ (?:set|export)"
    )
    return [line for line in lines if line and not others.match(line)]


@pytest.mark.parametrize("shell", ["bash", "dash"])
@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
@settings(max_examples=60, deadline=None)
@given(value=VALUES)
def test_what_a_shell_writes_is_masked(shell, locale, value):
    redaction = Redaction([value])
    lines = shell_lines(shell, _BASH if shell == "bash" else _SHELL, value, locale)
    assert len(lines) >= 2
    for line in lines:
        shown = redaction.text(line)
        assert _AROUND.fullmatch(shown), (line, shown)


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
# A process of node takes a while to start, so each is given many values.
@settings(max_examples=4, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.lists(VALUES, min_size=60, max_size=60))
def test_what_javascript_writes_is_masked(values):
    done = subprocess.run(
        ["node", "-e", _NODE], input=json.dumps(values).encode(), capture_output=True, check=True
    )
    for value, forms in zip(values, json.loads(done.stdout), strict=True):
        redaction = Redaction([value])
        for form in forms:
            shown = redaction.text(form)
            assert re.fullmatch("[\"'`]?\\*\\*\\*[\"'`]?", shown), (value, form, shown)


@settings(max_examples=100, deadline=None)
@given(st.data(), VALUES)
def test_any_cut_of_any_form_shows_nothing_but_a_few_characters(data, value):
    redaction = Redaction([value])
    forms = [*list(python_forms(value))[:-1], f"e{value.encode().hex()}"]
    form = data.draw(st.sampled_from(forms))
    line = f"a {form} z"
    cuts = sorted(data.draw(st.sets(st.integers(1, len(line) - 1), max_size=4)))
    texts = [line[i:j] for i, j in zip([0, *cuts], [*cuts, len(line)], strict=True)]
    stored, before = [], ""
    for number, text in enumerate(texts, 1):
        shown, before = redaction.piece(text, before, more=number < len(texts))
        stored.append(shown)
    # The first characters may be shown, before the value can be recognized.
    left = "".join(stored).replace("***", "")
    assert form.startswith(left.removeprefix("a ").removesuffix(" z"))
    assert Redaction([value[:3] + "\0" * 6]).text(left) == left
    assert len(left) <= len("a  z") + 3 * 14, (texts, stored)
