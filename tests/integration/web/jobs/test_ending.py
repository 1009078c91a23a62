"""The panel of a job's end: each fact once, and what is long folded."""

from __future__ import annotations

import re

import pytest

from jobs.actions.jobs.history import record_note
from jobs.ground import clock
from jobs.models import AttemptStage, Job, JobEvent
from jobs.statuses import EVIDENCE, JobStatus
from tests.factories import make_attempt, make_job

ERROR = "ValueError: shard 3 is corrupt"
MESSAGE = f"The program on rank 3 (10.0.0.4) raised {ERROR} at train.py:8."
FRAMES = "".join(
    f'  File "/v/a.py", line {n}, in f\n    call({n})\n    ^^^^^^^^\n' for n in range(1, 9)
)
TRACE = f"Traceback (most recent call last):\n{FRAMES}{ERROR}"


@pytest.fixture
def failed(project, member):
    """Create a job that ended by an exception, with its traceback as evidence."""
    job = make_job(
        project,
        status=JobStatus.FAILED,
        submitted_by=member.user,
        stop_reason="USER_CODE",
        message=MESSAGE,
        hint="See the traceback in the log.",
        exit_code=1,
    )
    attempt = make_attempt(job, ended_at=clock.now(), message=MESSAGE)
    times = {"started_at": clock.now(), "ended_at": clock.now()}
    AttemptStage.objects.create(attempt=attempt, name="run", failure=MESSAGE, **times)
    record_note(job, TRACE, attempt, verb=EVIDENCE, line=58)
    return job


def ending(viewer, job: Job) -> str:
    html = viewer.get(f"/rl/jobs/{job.pk}").content.decode()
    found = re.search(
        r'<div id="job-ending">.*?(?=<section class="panel" aria-label="Det)', html, re.DOTALL
    )
    assert found is not None
    return found[0]


def unfolded(panel: str) -> str:
    return re.sub(r"<details >.*?</details>", "", panel, flags=re.DOTALL)


def test_an_exception_is_said_once_with_a_link_to_its_line_and_the_rest_is_folded(viewer, failed):
    panel = ending(viewer, failed)
    assert unfolded(panel).count("shard 3 is corrupt") == 1
    assert f'href="/rl/jobs/{failed.pk}?attempt=1#A1-L58"' in unfolded(panel)
    assert "Traceback, 26 lines" in panel
    assert "Traceback (most recent call last)" in panel


def test_no_hint_sends_the_reader_to_what_is_shown(viewer, failed):
    assert "See the traceback" not in ending(viewer, failed)
    JobEvent.objects.filter(verb=EVIDENCE).delete()
    assert "See the traceback" in ending(viewer, failed)


@pytest.mark.parametrize(("evidence", "shown"), [(ERROR, 0), ("MemoryError: no room", 1)])
def test_a_diagnosis_repeats_no_line_that_the_message_has(viewer, failed, evidence, shown):
    diagnosis = {"code": "x", "title": "Broken data", "evidence": evidence, "fix": "Repair it."}
    failed.attempts.update(diagnosis=diagnosis)
    panel = unfolded(ending(viewer, failed))
    assert panel.count('class="diagnosis-line"') == shown
    assert panel.count("shard 3 is corrupt") == 1


def test_a_long_traceback_that_no_message_names_begins_at_its_head(viewer, failed):
    Job.objects.filter(pk=failed.pk).update(message="The program returned exit code 3.")
    panel = ending(viewer, failed)
    found = re.search(r'<pre class="end".*?>(.*?)</pre>', panel, re.DOTALL)
    assert found is not None
    assert found[1].split("\n") == [
        "Traceback (most recent call last):",
        "  ...",
        "  File &quot;/v/a.py&quot;, line 8, in f",
        "    call(8)",
        ERROR,
    ]


def test_evidence_that_is_in_the_message_is_no_evidence(viewer, failed):
    JobEvent.objects.filter(verb=EVIDENCE).update(message=f"raised {ERROR}\n")
    assert "<pre" not in ending(viewer, failed)
