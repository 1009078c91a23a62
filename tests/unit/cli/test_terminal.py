"""Output to a terminal: colors of users and their programs, nothing else that acts on it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from monarch_client.cli import terminal
from monarch_client.cli.terminal import for_programs, one_line, safe
from tests.unit.rest.fake_portal import (
    attempt_json,
    ended_job,
    event,
    job_json,
    line_json,
    ok,
    page,
    stage_json,
    stream,
)

JOB = "GET /projects/rl/jobs/42"
TITLE = "\x1b]0;pwned\x07"
CLEAR = "\x1b[2J\x1b[H"
HOSTILE = f"a{TITLE}b{CLEAR}c\u202ed\x9b31me\x08\x7ff\ud800g"
ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def acts(text: str) -> bool:
    """Whether anything in it but ends of lines and colors acts on a terminal."""
    return bool(ACTING.search(re.sub(r"\x1b\[[0-9;]*m", "", text)))


@pytest.mark.parametrize("text", [HOSTILE, "\x1b", "\x1b[", "\x1bc", "\x1bPq\x1b\\", "\r\x1b[1A"])
def test_nothing_is_left_that_acts(text):
    assert not acts(safe(text))
    assert not acts(one_line(text))


def test_what_is_left_out_is_only_what_cannot_be_seen():
    assert safe(HOSTILE) == r"a\x1b]0;pwned\x07bc\u202ed\x9b31me\x08\x7ff\ud800g"


def test_colors_stay_and_end_where_the_text_ends():
    assert safe("\x1b[1;31mred") == "\x1b[1;31mred\x1b[0m"
    assert safe("\x1b[31mred\x1b[0m") == "\x1b[31mred\x1b[0m"
    assert safe("\x1b[31mred", colors=False) == "red"
    assert safe("ü → 日本 😀\tx\ny") == "ü → 日本 😀\tx\ny"


@pytest.mark.parametrize("end", ["\x07", "\x1b\\"])
def test_of_a_link_only_its_text_is_shown(end):
    link = f"see \x1b]8;id=1;https://hub.example/run/7{end}the run\x1b]8;;{end} now"
    assert safe(link) == one_line(link) == "see the run now"
    assert safe("\x1b(B\x1b[mdone") == "\x1b[mdone\x1b[0m"
    assert safe("\x1b]8;;never ends") == r"\x1b]8;;never ends"


def test_a_sentence_from_outside_cannot_look_like_several_of_ours():
    assert one_line("No.\nJob 7: Succeeded\r\n\tdone") == "No. Job 7: Succeeded  done"


def test_json_stays_json():
    text = json.dumps({"a": HOSTILE}, ensure_ascii=False)
    assert not acts(for_programs(text))
    assert json.loads(for_programs(text)) == {"a": HOSTILE}


def test_no_command_writes_past_it():
    folder = Path(terminal.__file__).parent
    writes = re.compile(r"click\.(echo|secho)\(|(?<![.\w])print\(|sys\.std(out|err)\.write")
    guilty = [file.name for file in folder.glob("*.py") if writes.search(file.read_text())]
    assert guilty == ["terminal.py"]


@pytest.fixture
def hostile(portal):
    """Populate a portal on which everything that users can write is hostile."""
    job = ended_job("FAILED", name=HOSTILE, message=HOSTILE, hint=HOSTILE, submitted_by=HOSTILE)
    stages = [stage_json("run", "failed", failure=HOSTILE), stage_json("setup", "done")]
    stages[1]["detail"] = HOSTILE
    attempts = [attempt_json(2, stages=stages), attempt_json(1, message=f"{HOSTILE}!")]
    history = {
        "id": 1, "at": "2026-03-01T12:00:00Z", "kind": "note", "verb": HOSTILE, "old_status": "",
        "new_status": "", "reason": "", "message": HOSTILE, "actor": HOSTILE, "source": HOSTILE,
        "attempt": None,
    }  # fmt: skip
    lines = [line_json(1, HOSTILE), line_json(2, HOSTILE, more=True), line_json(3, HOSTILE)]
    portal.on("GET /projects/rl/jobs", page([job, job_json(wait_message=HOSTILE)]))
    portal.on(JOB, ok(job))
    portal.on(f"{JOB}/attempts", page(attempts))
    portal.on(f"{JOB}/events", page([history]))
    portal.on(f"{JOB}/logs", page(lines))
    portal.on(f"{JOB}/logs/stream", stream(event("line", lines, "1:3"), event("end")))
    refused = {
        "job": 42, "name": HOSTILE, "result": "refused", "message": HOSTILE, "code": HOSTILE,
        "new_job": None, "previous_priority": None,
    }  # fmt: skip
    portal.on("POST /projects/rl/jobs/actions", ok({"results": [refused]}))
    portal.on("POST /projects/rl/jobs/42/actions/rerun", ok(job, 201))
    return portal


@pytest.mark.parametrize("color", [True, False])
@pytest.mark.parametrize(
    "command",
    [
        "ps", "ps -o json", "ps -o yaml", "get 42", "get 42 -o json", "get 42 -o yaml",
        "events 42", "logs 42", "logs -f 42", "wait 42", "cancel 42", "hold 42", "rerun 42",
    ],
)  # fmt: skip
def test_no_command_lets_a_hostile_text_act(mportal, hostile, command, color):
    result = mportal(*command.split(), color=color)
    assert "pwned" in result.stdout + result.stderr
    assert not acts(result.stdout) and not acts(result.stderr)


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_programs_get_what_was_written(mportal, hostile, form):
    read = {"json": json.loads, "yaml": yaml.safe_load}[form]
    written = HOSTILE.replace("\ud800", "")
    text = mportal("get", "42", "-o", form).stdout
    assert read(text)["name"].replace("\ud800", "") == written


def test_a_character_the_terminal_lacks_is_shown_by_its_number(monkeypatch):
    monkeypatch.setattr("sys.stdout", Latin())
    terminal.say("ü → x")
    assert terminal.sys.stdout.said == "ü \\u2192 x\n"


class Latin:
    """A terminal that can show Latin letters only."""

    encoding = "latin-1"

    def __init__(self) -> None:
        self.said = ""

    def write(self, text: str) -> None:
        text.encode("latin-1")
        self.said += text

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False
