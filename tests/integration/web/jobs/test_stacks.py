"""/{project}/jobs/{id}/nodes, stacks: the form, the request, and the stacks of the processes."""

from __future__ import annotations

import re

import pytest

from jobs.ground import clock
from jobs.models import Attempt, StackDump, Worker
from jobs.statuses import Carrier, JobStatus, StackState, WorkerStatus
from tests.factories import make_attempt, make_job
from tests.integration.web.conftest import SOURCE, text_of

TEXT = 'Thread 7 (idle): "MainThread"\n    waits_for_nobody (<b>wait.py:5)'
PROCESS = {"pid": 7, "command": "python wait.py", "text": TEXT, "why": ""}


@pytest.fixture
def attempt(project, member) -> Attempt:
    job = make_job(
        project,
        status=JobStatus.RUNNING,
        submitted_by=member.user,
        num_nodes=3,
        spec_source=SOURCE,
    )
    made = make_attempt(job, contacted_at=clock.now(), carrier=Carrier.PUSH)
    Worker.objects.create(attempt=made, rank=2, status=WorkerStatus.RUNNING, pid=77)
    return made


def tab(of: Attempt, more: str = "") -> str:
    return f"/rl/jobs/{of.job_id}/nodes{more}?show=stacks"


def ask(of: Attempt) -> str:
    return f"/rl/jobs/{of.job_id}/stacks/ask"


def done(of: Attempt, **fields) -> StackDump:
    known = {"processes": [PROCESS], "state": StackState.DONE, "ended_at": clock.now()}
    return StackDump.objects.create(attempt=of, **{"rank": 0, **known, **fields})


def test_the_form_asks_and_the_tab_shows_that_it_waits(member, attempt) -> None:
    answer = member.post(ask(attempt), {"rank": "2", "pid": ""}, follow=True)
    assert answer.redirect_chain == [(tab(attempt), 302)]
    (dump,) = StackDump.objects.all()
    assert (dump.rank, dump.pid, dump.asked_by) == (2, None, member.user)
    assert "Requested." in text_of(answer)


def test_what_came_is_shown_as_it_is_and_escaped(viewer, attempt) -> None:
    done(attempt, left_out=2)
    html = viewer.get(tab(attempt)).content.decode()
    assert "waits_for_nobody (&lt;b&gt;wait.py:5)" in html
    assert "And 2 more processes, not listed here." in html
    assert "stacks-form" not in html


def test_of_several_the_newest_is_open_and_another_can_be_chosen(viewer, attempt) -> None:
    old = done(attempt, rank=1, processes=[{**PROCESS, "text": "the old one"}])
    done(attempt)
    assert "the old one" not in viewer.text(tab(attempt))
    live = viewer.text(tab(attempt, "/live") + f"&dump={old.pk}")
    assert "the old one" in live
    assert "waits_for_nobody" not in live


def test_a_failure_says_why(viewer, attempt) -> None:
    why = "py-spy may not read this process"
    process = {**PROCESS, "text": "", "why": why}
    done(attempt, state=StackState.FAILED, why=why, processes=[process])
    assert why in viewer.text(tab(attempt))


@pytest.mark.parametrize("form", [{}, {"rank": "x"}, {"rank": "-1"}, {"rank": "0", "pid": "zero"}])
def test_an_invalid_rank_is_reported_and_nothing_is_requested(member, attempt, form) -> None:
    answer = member.post(ask(attempt), form, follow=True)
    assert "Choose a node of the job" in text_of(answer)
    assert not StackDump.objects.exists()


def test_obstacles_are_named_on_the_page(member, attempt) -> None:
    Attempt.objects.update(carrier=Carrier.PULL)
    answer = member.post(ask(attempt), {"rank": "0"}, follow=True)
    assert "do not reach this portal" in text_of(answer)


def test_who_may_not_ask_is_refused(viewer, attempt) -> None:
    assert viewer.post(ask(attempt), {"rank": "0"}).status_code == 403


def test_a_worker_leads_to_the_stacks_of_its_rank(member, attempt) -> None:
    html = member.get(f"/rl/jobs/{attempt.job_id}/nodes").content.decode()
    assert 'href="?show=stacks&amp;rank=2"' in html
    assert 'value="2"' in member.get(tab(attempt) + "&rank=2").content.decode()


def test_a_part_that_will_not_change_says_so(viewer, attempt) -> None:
    assert "data-final" not in viewer.get(tab(attempt, "/live")).content.decode()
    done(attempt)
    Attempt.objects.update(ended_at=clock.now())
    job = attempt.job
    type(job).objects.filter(pk=job.pk).update(status=JobStatus.FAILED, ended_at=clock.now())
    assert "data-final" in viewer.get(tab(attempt, "/live")).content.decode()


def test_one_click_asks_all_ranks_and_the_tab_shows_who_differs(member, attempt) -> None:
    answer = member.post(f"/rl/jobs/{attempt.job_id}/stacks/ask-all", follow=True)
    assert "Requested from 3 nodes (0–2)" in text_of(answer)
    for rank in range(3):
        text = TEXT.replace("waits_for_nobody", "read_batch") if rank == 2 else TEXT
        row = StackDump.objects.filter(rank=rank)
        row.update(state=StackState.DONE, processes=[{**PROCESS, "text": text}])
    shown = member.text(tab(attempt))
    assert "2 nodes in waits_for_nobody" in shown
    assert "Node 2 in read_batch" in shown
    assert "Requested from" not in shown


def test_a_job_of_one_rank_has_no_button_for_all(member, attempt) -> None:
    assert "Dump all nodes" in member.text(tab(attempt))
    type(attempt.job).objects.update(num_nodes=1)
    assert "Dump all nodes" not in member.text(tab(attempt))


def test_equal_calls_of_one_rank_with_different_callers_have_ids_of_their_own(
    viewer, attempt
) -> None:
    texts = [f"{TEXT}\n    {caller} (main.py:9)" for caller in ("train", "evaluate")]
    processes = [{**PROCESS, "text": text} for text in texts]
    now = clock.now()
    for rank in range(2):
        done(attempt, rank=rank, processes=processes, asked_at=now)
    html = viewer.get(tab(attempt)).content.decode()
    ids = re.findall(r'id="(stack-group-[^"]+)"', html)
    assert len(set(ids)) == len(texts), ids


def test_a_dump_of_one_rank_is_shown_beside_the_groups_of_an_earlier_request(
    viewer, attempt
) -> None:
    now = clock.now()
    for rank in range(3):
        done(attempt, rank=rank, asked_at=now)
    newest = done(attempt, rank=1, processes=[{**PROCESS, "text": "the newest one"}])
    html = viewer.get(tab(attempt)).content.decode()
    assert "the newest one" in html
    assert 'id="stack-groups"' in html
    assert f'id="stacks-of-{newest.pk}"' in html
