"""Tokens of the portal and values of secrets never get into a stored log."""

from __future__ import annotations

import base64
import ctypes
import json
import random
import subprocess
import time
from urllib.parse import quote, quote_plus

import pytest

from jobs.actions.attempts.hand_secrets import MOST_BYTES_OF_JOB
from jobs.logs.needles import is_masked
from jobs.logs.redaction import Redaction, RedactionCache, redacted

API_TOKEN = "mpt_" + "aB3-_" * 8 + "xyz"
ATTEMPT_TOKEN = "mpa_" + "0123456789abcdef" * 4
DRIVER_TOKEN = "mpj_" + "9" * 18 + "_" + "aB3-_" * 8 + "xyz"
VALUE = 'pä$$ w0rd/"quoted"&<it\'s>+=\\end'
KEY = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQ\nEAwJalrXUtnFEMI\nend\n-----END KEY-----\n"


@pytest.mark.parametrize("token", [API_TOKEN, ATTEMPT_TOKEN, DRIVER_TOKEN])
def test_a_token_is_masked_wherever_it_stands(token):
    assert redacted(f"MPORTAL_TOKEN={token}") == f"MPORTAL_TOKEN={token[:4]}***"
    assert token not in redacted(f'{{"a":"{token}","b":"{token}"}}')
    assert token not in Redaction(["another"]).text(token)


@pytest.mark.parametrize("text", ["", "mpa_", "mpt_short", "an ordinary line", "xmpa_" + "0" * 64])
def test_everything_else_is_left_alone(text):
    assert redacted(text) == Redaction().text(text) == Redaction([VALUE]).text(text) == text


@pytest.mark.parametrize(
    "form",
    [
        VALUE,
        repr(VALUE),
        json.dumps(VALUE),
        json.dumps({"a": VALUE}, ensure_ascii=False),
        quote(VALUE),
        quote(VALUE, safe=""),
        quote_plus(VALUE),
        VALUE.encode().hex(),
        VALUE.encode().hex().upper(),
    ],
)
def test_a_value_is_masked_in_every_form_it_is_often_written_in(form):
    shown = Redaction([VALUE]).text(f"before {form} after")
    assert shown.startswith("before ") and shown.endswith(" after")
    assert "***" in shown
    assert "w0rd" not in shown and b"w0rd".hex() not in shown.lower()


@pytest.mark.parametrize("around", ["", "u", "user:", "user!:", "x" * 20])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_value_is_masked_in_base64_wherever_it_begins(around, encode):
    text = encode(f"{around}{VALUE}:{around}".encode()).decode()
    shown = Redaction([VALUE]).text(f"Authorization: Basic {text}")
    assert "***" in shown
    left = shown.removeprefix("Authorization: Basic ").rstrip("=").partition("***")
    # At either end at most one character, which holds a few bits of the value.
    assert len(left[0]) * 6 <= len(around.encode()) * 8 + 5
    assert len(left[2]) * 6 <= len(f":{around}") * 8 + 10


def test_what_base64_folds_is_masked_line_by_line():
    value = "s3cr3t-" * 30
    folded = subprocess.run(["base64"], input=value.encode(), capture_output=True, check=True)
    lines = folded.stdout.decode().splitlines()
    assert len(lines) > 2
    assert [Redaction([value]).text(line) for line in lines[:-1]] == ["***"] * (len(lines) - 1)


@pytest.mark.parametrize("value", ["hf_QwErTyUiOpAsDfGhJkLzXcVbNm0123456789", "s3cr3t-" * 45])
@pytest.mark.parametrize("width", [64, 76])
def test_what_base64_folds_within_a_value_is_masked_on_both_lines(value, width):
    redaction = Redaction([value])
    for before in range(0, width, 3 if len(value) > 50 else 1):
        text = base64.b64encode(f"{'#' * before}{value}\n#########".encode()).decode()
        lines = [text[at : at + width] for at in range(0, len(text), width)]
        begin, end = before * 8 // 6, (before + len(value)) * 8 // 6
        for number, line in enumerate(lines):
            of_value = min(end, (number + 1) * width) - max(begin, number * width)
            shown = redaction.text(line)
            left = len(shown.replace("***", "")) - (len(line) - max(0, of_value))
            assert left <= (6 if len(value) < 50 else 24), (before, line, shown)


def test_values_that_overlap_are_masked_whole():
    assert Redaction(["abcdef", "defghijklm"]).text("<abcdefghijklm>") == "<***>"


def test_each_line_of_a_value_is_masked_alone():
    redaction = Redaction([KEY])
    for line in KEY.splitlines():
        shown = redaction.text(f"| {line} |")
        assert shown == ("| end |" if line == "end" else "| *** |")
    assert "MIIE" not in redaction.text(repr(KEY))
    # A value that is JSON has escaped line ends; a program that decodes it prints real ones.
    assert "MIIE" not in Redaction([json.dumps({"key": KEY})]).text(KEY.splitlines()[1])


def test_the_longer_of_two_values_is_masked_whole():
    assert Redaction(["abcdef", "abcdefgh"]).text("abcdefgh abcdefg") == "*** ***g"


@pytest.mark.parametrize("value", ["x", "12345", "a\nbc\nd", "  pad  "])
def test_a_value_of_a_few_characters_is_not_looked_for(value):
    assert not is_masked(value)
    assert Redaction([value]).text("x 12345 pad") == "x 12345 pad"


class _Mallinfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
            "fordblks", "keepcost",
        )
    ]  # fmt: skip


def in_use() -> int:
    """Return the bytes that this process has allocated, in C and in Python."""
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _Mallinfo
    found = libc.mallinfo2()
    return found.uordblks + found.hblkhd


def pieces_of(redaction, texts):
    """Return the pieces of one long line as they are stored."""
    stored, before = [], ""
    for number, text in enumerate(texts, 1):
        shown, before = redaction.piece(text, before, more=number < len(texts))
        stored.append(shown)
    assert before == ""
    return stored


SECRET = "hunter2-hunter2!"


@pytest.mark.parametrize("cut", range(1, len(SECRET)))
def test_a_value_cut_in_two_is_masked_in_both_pieces(cut):
    first, second = pieces_of(Redaction([SECRET]), [f"a {SECRET[:cut]}", f"{SECRET[cut:]} z"])
    assert second == "*** z"
    assert first == (f"a {SECRET[:cut]}" if cut < 3 else "a ***")


def test_a_value_that_comes_letter_by_letter_is_masked():
    stored = pieces_of(Redaction([SECRET, "other-value"]), [*SECRET, " z"])
    assert "".join(stored).replace("***", "") == SECRET[:1] + " z"


def test_what_only_began_like_a_value_does_not_hide_what_follows():
    stored = pieces_of(Redaction([SECRET]), ["a hunter2-", "gatherer ", "hunter2-hunter2!"])
    assert stored == ["a ***", "gatherer ", "***"]


def test_any_cut_of_any_line_shows_nothing_of_a_value():
    chance = random.Random(4)
    values = ["abcabcabd", "aaaaaaaa", "abcaaaaaa"]
    redaction = Redaction(values)
    for _ in range(2000):
        line = "".join(chance.choice([*values, "a", "b", "xyz"]) for _ in range(6))
        cuts = sorted(chance.sample(range(1, len(line)), k=min(3, len(line) - 1)))
        texts = [line[i:j] for i, j in zip([0, *cuts], [*cuts, len(line)], strict=True)]
        stored = pieces_of(redaction, texts)
        assert not [v for v in values if v in "".join(stored).replace("***", "\0")], texts


def test_an_excerpt_shows_no_half_of_a_value():
    redaction = Redaction([SECRET])
    assert (
        redaction.excerpt(f"{SECRET[4:]} then {SECRET} and {SECRET[:9]}") == "*** then *** and ***"
    )
    assert redaction.excerpt("a hunter") == "a ***"
    assert redaction.excerpt("a\nb hunter\n\n-hunter2! c\n") == "a\nb ***\n\n*** c\n"
    assert redaction.excerpt("2! an ordinary hunt") == "2! an ordinary hunt"
    many = "x\n" * 300
    assert redaction.excerpt(f"{many}a hunter\n{many}") == f"{many}a ***\n{many}"


@pytest.mark.parametrize("cut", range(1, len(SECRET)))
def test_an_excerpt_made_of_pieces_shows_no_value_that_was_cut(cut):
    text = f"a\nslowly {SECRET[:cut]}\n{SECRET[cut:]}\nb {SECRET}\nc"
    assert Redaction([SECRET]).excerpt(text) == "a\nslowly ***\nb ***\nc"


@pytest.mark.parametrize("line", ["", "abcde", "zyxwvu", "\\x41%41", "%\\&'a1"])
def test_the_lines_of_an_excerpt_are_looked_at_in_little_time(line):
    redaction = Redaction([SECRET])
    text = f"{line}\n" * (64 * 1024 // (len(line) + 1)) + SECRET[4:]
    begun = time.process_time()
    assert redaction.excerpt(f"{text}\n{text}").count("***") == 2
    assert time.process_time() - begun < 1


def test_a_cache_is_bounded_in_bytes_and_keeps_the_ones_that_were_requested_last():
    size = Redaction(["value-1"]).size
    cache = RedactionCache(most_bytes=2 * size)
    for number in (1, 2):
        cache.put(number, Redaction([f"value-{number}"]))
    assert cache.get(1) is not None
    cache.put(3, Redaction(["value-3"]))
    assert [number for number in (1, 2, 3) if cache.get(number) is None] == [2]
    cache.put(4, Redaction(["v" * 20 + str(number) * 20 for number in range(2000)]))
    assert [number for number in (1, 2, 3, 4) if cache.get(number) is not None] == [4]
    cache.put(5, Redaction(["value-5"]))
    assert [number for number in (4, 5) if cache.get(number) is not None] == [5]


def test_the_longest_values_of_a_job_are_cached_beside_others_and_read_at_once():
    cache, chance = RedactionCache(), random.Random(7)
    for number in range(100):
        cache.put(number, Redaction([f"value-{number}"]))
    begun = time.process_time()
    longest = "".join(chr(chance.randint(0x20, 0x24F)) for _ in range(MOST_BYTES_OF_JOB // 2))
    cache.put("longest", Redaction([longest[: MOST_BYTES_OF_JOB // 4], longest]))
    assert time.process_time() - begun < 5
    assert all(cache.get(number) for number in (*range(100), "longest"))


@pytest.mark.parametrize("values", [1, 20, 200])
def test_the_bytes_of_a_redaction_are_those_that_it_takes(values):
    chance = random.Random(values)
    secrets = [base64.b64encode(chance.randbytes(60)).decode() for _ in range(values)]
    before = in_use()
    redaction = Redaction(secrets)
    redaction.excerpt(secrets[0][:8])
    assert 0.2 * redaction.size < in_use() - before < redaction.size


def test_looking_for_secrets_does_not_hold_a_log_up():
    lines = [
        f"step {i} loss={i / 7:.4f} throughput 12345.6 tokens/s on rank {i % 8}"
        for i in range(20_000)
    ]
    many = Redaction([f"value-{i}-{'x' * 30}" for i in range(30)])
    begun = time.process_time()
    for line in lines:
        many.text(line)
    assert time.process_time() - begun < 1.0


FIBONACCI = "ab"
while len(FIBONACCI) < 18_002:
    FIBONACCI = FIBONACCI.replace("a", "A").replace("b", "a").replace("A", "ab")


@pytest.mark.parametrize(
    "value",
    [
        base64.b64encode(random.Random(1).randbytes(13_502)).decode(),
        "a" * 18_001 + "b",
        FIBONACCI[:18_002],
        "\\u00e4%C3%A4&auml;" * 1000,
    ],
)
def test_the_time_is_linear_whatever_the_value_and_the_line(value):
    redaction = Redaction([value, "another"])
    begun = time.process_time()
    for unit in (value, value[:-1] + "\0", value[:23] + "\0", "\\", "%25"):
        line = (unit * (320 * 1024 // len(unit) + 1))[: 320 * 1024]
        redaction.text(line)
        redaction.piece(line[: 32 * 1024], "", more=True)
    redaction.excerpt(value * 4)
    assert time.process_time() - begun < 10


def test_neither_does_a_value_of_many_lines_that_begin_alike():
    value = json.dumps({f"key {i}": {"name": f"v {i} é", "x": [i]} for i in range(400)}, indent=2)
    redaction = Redaction([value])
    begun = time.process_time()
    text = "step 1 loss 0.25 /usr/lib/python3/x.py\n" * 800
    assert redaction.text(text) == text
    redaction.piece(value, "", more=True)
    assert time.process_time() - begun < 5.0
