"""/{project}/jobs/{id}/nodes, tasks: by name and state, failures, actors, objects of hosts."""

from __future__ import annotations

import re

import pytest

from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.ground import clock
from jobs.models import Attempt, TaskReport
from jobs.statuses import JobStatus
from jobs.web.jobs.tasks_tab import MOST_ROWS, MOST_SHOWN
from tests.factories import make_attempt, make_job
from tests.frame_bytes import body
from tests.integration.web.conftest import SOURCE
from tests.task_frames import actor, context, count, failure, report

LARGEST_PAGE = 500_000


@pytest.fixture
def attempt(project, member) -> Attempt:
    job = make_job(
        project,
        status=JobStatus.RUNNING,
        submitted_by=member.user,
        num_nodes=40,
        spec_source=SOURCE,
    )
    return make_attempt(job)


def tell(attempt: Attempt, *frames) -> None:
    token = attempt_token(attempt.job_id, attempt.number)
    now = clock.now().timestamp()
    ingest_frames(attempt.pk, token, body(*({**each, "t": now} for each in frames)))


def address(attempt: Attempt, view: str = "?show=tasks") -> str:
    return f"/rl/jobs/{attempt.job_id}/nodes{view}"


def test_the_view_is_there_once_a_context_was_reported(viewer, attempt) -> None:
    def has_view(query: str = "") -> bool:
        return "show=tasks" in viewer.get(address(attempt, query)).content.decode()

    assert not has_view()
    tell(attempt, report(0))
    assert has_view()
    attempt.ended_at = clock.now()
    attempt.save()
    make_attempt(attempt.job, number=2)
    assert has_view("?attempt=1")
    assert not has_view("?attempt=2")


def test_tasks_actors_hosts_and_failures_are_shown(viewer, attempt) -> None:
    tell(attempt, report(0, context(tasks=[count(), count("", finished=1234567)])))
    page = viewer.text(address(attempt))
    for words in (
        "4 running, 8 pending, 1,234,657 finished, 6 failed, 2 cancelled; 1 actor; 9 objects",
        "250 ms",
        "other names",
        "Counter",
        "3.0 GiB",
        "ValueError: bad number 7",
        "And 2 more earlier failures, not listed here.",
    ):
        assert words in page


def test_a_context_outside_of_the_job_has_the_name_of_its_machine(viewer, attempt) -> None:
    tell(attempt, report(0, context(machine="ada-laptop")))
    assert "On ada-laptop, outside of the job, process 71:" in viewer.text(address(attempt))


def test_names_lead_to_their_lines_in_the_log(viewer, attempt) -> None:
    rows = [count("square"), count("Counter.add"), count("Plain.add")]
    actors = [actor("steps"), actor("", kind="Plain")]
    tell(attempt, report(0, context(tasks=rows, actors=actors)))
    html = viewer.get(address(attempt)).content.decode()
    finds = re.findall(r"/log[?]find=([^\"]*)", html)
    # The lines of a named actor begin with its name, and not with that of its class.
    assert finds == ["%28square%2C", "%28Plain.add%2C", "%28steps.", "%28Plain."]


def test_tasks_with_names_of_their_own_are_one_row_of_their_function(viewer, attempt) -> None:
    rows = [count(f"fit ({number}, 1e-06)", function="fit") for number in range(40)]
    tell(attempt, report(0, context(tasks=[*rows, count("square")])))
    html = viewer.get(address(attempt)).content.decode()
    groups = re.findall(r'<tbody id="tasks-.*?</tbody>', html, re.DOTALL)
    assert len(groups) == 2
    head, *members = re.findall(r"<tr.*?</tr>", groups[0], re.DOTALL)
    assert " ".join(re.sub("<.*?>", " ", head).split()).startswith("fit 40 names 160 80 3,600")
    assert len(members) == 40
    assert all('class="task-of-group"' in each for each in members)


def test_what_programs_report_is_shown_as_text(viewer, attempt) -> None:
    bad = "<script>alert(1)</script>"
    rows = {"tasks": [count(bad)], "actors": [actor(bad, why=bad)]}
    tell(attempt, report(0, context(**rows, failures=[failure(bad, trace=bad)])))
    html = viewer.get(address(attempt)).content.decode()
    assert bad not in html
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 4


def test_many_contexts_are_one_page_and_counted(viewer, attempt) -> None:
    rows = [count(f"task-{number}") for number in range(50)]
    for rank in range(40):
        tell(attempt, {**report(0, context(tasks=rows), left_out=1), "rank": rank})
    response = viewer.get(address(attempt))
    assert len(response.content) < LARGEST_PAGE
    assert f"And {50 - MOST_ROWS // MOST_SHOWN} more names" in viewer.text(address(attempt))
    left_out = 40 + 40 - MOST_SHOWN
    assert f"And {left_out} more contexts, not listed here." in " ".join(
        response.content.decode().split()
    )


def test_stored_contexts_that_cannot_be_read_are_counted(viewer, attempt) -> None:
    late = context(failures=[failure(at="9999-12-31T23:59:59-12:00")])
    contexts = [context(tasks_left_out=2**53 + 1), late]
    TaskReport.objects.create(
        attempt=attempt, rank=0, at=clock.now(), latest={"contexts": contexts, "left_out": 0}
    )
    assert viewer.get(address(attempt)).status_code == 200
    found = viewer.get(f"/api/v1/projects/rl/jobs/{attempt.job_id}/tasks").json()
    assert (len(found["contexts"]), found["left_out"]) == (1, 1)
