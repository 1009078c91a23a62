"""/{project}/jobs/{id}: owner, status, ending, stages, workers, events, spec, tabs."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.actions.jobs.history import record_note
from jobs.backends.fake.backend import FakeBackend
from jobs.models import AttemptStage, Job, JobEvent, Worker
from jobs.statuses import EVIDENCE, LOG_POLICY, EventKind, JobKind, JobStatus, WorkerStatus
from tests.factories import make_attempt, make_job
from tests.integration.web.conftest import SOURCE, text_of


@pytest.fixture
def failed(project, member):
    """Create a job that failed in its second attempt, with stages and workers."""
    job = make_job(
        project,
        name="ppo",
        status=JobStatus.FAILED,
        submitted_by=member.user,
        num_nodes=2,
        spec_source=SOURCE,
        stop_reason="USER_CODE",
        message="The driver ended with exit code 7.",
        hint="Look at the last lines of rank 0.",
        exit_code=7,
    )
    now = timezone.now()
    make_attempt(job, ended_at=now, message="lost")
    second = make_attempt(job, ended_at=now)
    start = now - timedelta(seconds=75)
    AttemptStage.objects.create(attempt=second, name="launch", started_at=start, ended_at=now)
    AttemptStage.objects.create(
        attempt=second, name="run", started_at=start, ended_at=now, failure="exit code 7"
    )
    record_note(job, "ValueError: <nan>", second, verb=EVIDENCE)
    Worker.objects.create(attempt=second, rank=0, mesh="trainers", status=WorkerStatus.EXITED)
    Worker.objects.create(
        attempt=second, rank=1, address="127.64.1.11:22222", status=WorkerStatus.LOST
    )
    JobEvent.objects.create(
        job=job, kind=EventKind.ACTION, message="Submitted", actor=member.user, source="203.0.113.9"
    )
    return job


def begin(job: Job, **stages_s: tuple[float, float | None]) -> None:
    """Store an attempt's stages, (begin, end) in seconds since now, and the moves of its job."""
    now = timezone.now()
    attempt = make_attempt(job)
    for name, (begin_s, end_s) in stages_s.items():
        AttemptStage.objects.create(
            attempt=attempt,
            name=name,
            started_at=now + timedelta(seconds=begin_s),
            ended_at=None if end_s is None else now + timedelta(seconds=end_s),
        )
    before = "QUEUED"
    for status, at_s in (("PROVISIONING", -60), ("SETTING_UP", -50), ("RUNNING", -40)):
        event = JobEvent.objects.create(
            job=job, attempt=attempt, old_status=before, new_status=status
        )
        JobEvent.objects.filter(pk=event.pk).update(at=now + timedelta(seconds=at_s))
        before = status


def shown_times(html: str, pattern: str) -> list[str]:
    """Return each stage with its time, as a page shows them."""
    found = re.findall(pattern, html, re.DOTALL)
    texts = [
        " ".join(re.sub(r'<span class="sr-only">.*?</span>|<.*?>', " ", each).split())
        for each in found
    ]
    return [re.sub(" attempt 1$", "", text) for text in texts]


def test_events_name_the_stages_and_their_times_as_the_head_of_the_page_does(viewer, project):
    job = make_job(project, status=JobStatus.RUNNING, spec_source=SOURCE, kind=JobKind.MONARCH)
    begin(job, launch=(-59, -51), setup=(-51, -50), workers=(-50, -45), run=(-45, -15))
    html = viewer.get(f"/rl/jobs/{job.pk}/events").content.decode()
    life = shown_times(re.search(r'id="job-life".*?</section>', html, re.DOTALL)[0], "<li>.*?</li>")
    stages = shown_times(html, r'<li class="stage done".*?</li>')
    assert stages == [
        "Provisioning 8.0 s",
        "Setting up 1.0 s",
        "Starting workers 5.0 s",
        "Running 30 s",
    ]
    assert life[1:] == stages
    assert life[0].startswith("Waiting")


def test_a_plain_job_starts_no_workers(viewer, project):
    job = make_job(project, status=JobStatus.RUNNING, spec_source=SOURCE, kind=JobKind.PLAIN)
    begin(job, launch=(-59, -51), setup=(-51, -50), workers=(-50, -50), run=(-50, None))
    answer = viewer.get(f"/api/v1/projects/rl/jobs/{job.pk}/attempts").json()
    (attempt,) = answer["results"]
    assert [each["name"] for each in attempt["stages"]] == ["launch", "setup", "run", "teardown"]
    AttemptStage.objects.filter(name="workers").update(failure="rank 1 was lost")
    (attempt,) = viewer.get(f"/api/v1/projects/rl/jobs/{job.pk}/attempts").json()["results"]
    assert "workers" in [each["name"] for each in attempt["stages"]]


def test_a_hint_shows_code_as_code_and_nothing_else_as_markup(viewer, failed):
    Job.objects.filter(pk=failed.pk).update(hint="Correct `setup` of <b>, `a<i>b`, run again.")
    page = viewer.get(f"/rl/jobs/{failed.pk}").content.decode()
    assert "Correct <code>setup</code> of &lt;b&gt;, <code>a&lt;i&gt;b</code>, run again." in page


@pytest.mark.parametrize(
    ("status", "tab"), [(JobStatus.QUEUED, "log"), (JobStatus.CANCELLED, "spec")]
)
def test_a_job_that_ended_before_it_started_opens_at_its_spec(viewer, project, status, tab):
    job = make_job(project, status=status, spec_source=SOURCE)
    html = viewer.get(f"/rl/jobs/{job.pk}").content.decode()
    assert re.search(r'id="tab-(\w+)"[^>]*aria-current="true"', html)[1] == tab


def test_an_ending_without_a_message_shows_the_status(viewer, failed):
    Job.objects.filter(pk=failed.pk).update(message="", stop_reason="", hint="")
    page = viewer.get(f"/rl/jobs/{failed.pk}").content.decode()
    said = re.search(r'<p class="said">(.*?)</p>', page, re.DOTALL)
    assert said is not None and said[1].strip() == "Failed"


@pytest.mark.feature("P3.4")
def test_what_a_line_brought_about_leads_to_the_line(viewer, failed):
    first = failed.attempts.get(number=1)
    record_note(failed, "A disk is full (rank 0): <ENOSPC>", first, verb=LOG_POLICY, line=417)
    page = viewer.get(f"/rl/jobs/{failed.pk}/events").content.decode()
    assert "A disk is full (rank 0): &lt;ENOSPC&gt;" in page
    assert f'href="/rl/jobs/{failed.pk}?attempt=1#A1-L417"' in page


def test_a_diagnosis_shows_the_line_and_what_helps(viewer, failed):
    found = {"code": "x", "title": "No driver", "evidence": "<libcuda>", "fix": "Run `nvidia-smi`."}
    failed.attempts.filter(number=2).update(diagnosis=found)
    page = viewer.get(f"/rl/jobs/{failed.pk}").content.decode()
    headline = re.search(r'<p class="said">(.*?)</p>', page, re.DOTALL)
    assert headline is not None and headline[1].strip() == "No driver"
    assert '<code class="diagnosis-line">&lt;libcuda&gt;</code>' in page
    assert "Run <code>nvidia-smi</code>." in page
    assert "No driver" not in viewer.get(f"/rl/jobs/{failed.pk}?attempt=1").content.decode()
    answer = viewer.get(f"/api/v1/projects/rl/jobs/{failed.pk}/attempts").json()["results"]
    assert [row["diagnosis"] for row in answer] == [found, None]


def test_evidence_that_is_the_line_of_the_diagnosis_is_shown_once(viewer, failed):
    found = {"code": "x", "title": "A nan", "evidence": "ValueError: <nan>", "fix": "Clip it."}
    failed.attempts.filter(number=2).update(diagnosis=found)
    page = viewer.get(f"/rl/jobs/{failed.pk}").content.decode()
    ending = page[: page.index('id="job-events"')]
    assert ending.count("ValueError: &lt;nan&gt;") == 1


def test_the_header_shows_owner_command_and_location(viewer, failed):
    page = viewer.text(f"/rl/jobs/{failed.pk}")
    for words in (
        f"ppo #{failed.pk}",
        "Failed",
        "By mia",
        "Nodes 2",
        "Exit code 7",
        "Queue default",
    ):
        assert words in page


def test_an_ending_is_one_sentence_with_what_to_do_and_the_evidence(viewer, failed):
    html = viewer.get(f"/rl/jobs/{failed.pk}").content.decode()
    assert "The driver ended with exit code 7." in html
    assert "Look at the last lines of rank 0." in html
    assert "ValueError: &lt;nan&gt;" in html


def test_long_evidence_is_folded_and_shows_its_end(viewer, failed):
    JobEvent.objects.filter(verb=EVIDENCE).update(message="\n".join(f"at {n}" for n in range(40)))
    html = viewer.get(f"/rl/jobs/{failed.pk}").content.decode()
    folded, _, end = html.partition('<pre class="end"')
    assert re.search(r"<details >\s*<summary>\s*Evidence\s*, 40 lines", folded)
    assert end.split("</pre>")[0].endswith("at 36\nat 37\nat 38\nat 39")


@pytest.mark.feature("S2.6")
def test_parent_and_children_lead_to_each_other(viewer, project):
    parent = make_job(project, status=JobStatus.RUNNING)
    family = {"parent": parent, "parent_number": parent.pk, "parent_attempt": 2}
    children = [make_job(project, name=f"eval-{n}", **family) for n in range(7)]
    page = viewer.get(f"/rl/jobs/{parent.pk}").content.decode()
    shown = [child.pk for child in children if f'href="/rl/jobs/{child.pk}"' in page]
    assert shown == [child.pk for child in children[-5:]]
    assert "7 in all" in page
    below = f"/rl/jobs/{children[0].pk}"
    assert f'href="/rl/jobs/{parent.pk}"' in viewer.get(below).content.decode()
    assert f"Parent #{parent.pk} attempt 2" in viewer.text(below)
    Job.objects.filter(pk=parent.pk).delete()
    assert f'href="/rl/jobs/{parent.pk}"' not in viewer.get(below).content.decode()
    assert f"Parent #{parent.pk}" in viewer.text(below)


def test_a_held_job_says_once_who_holds_it(viewer, project):
    job = make_job(project, held=True, wait_reason="HELD", message="Held by ada.")
    assert viewer.text(f"/rl/jobs/{job.pk}").count("Held by") == 1


def test_what_is_not_there_is_reported_within_the_readers_own_frame(viewer, project):
    response = viewer.get("/rl/jobs/99999")
    assert response.status_code == 404
    assert "There is no job 99999" in text_of(response)
    assert "Signed in as" in text_of(response)


def test_a_waiting_job_says_why_it_waits(viewer, project, settings, tmp_path):
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path)
    FakeBackend(tmp_path).set_capacity(5)
    make_attempt(make_job(project, status=JobStatus.RUNNING, num_nodes=4))
    job = make_job(project, num_nodes=4, wait_reason="CAPACITY", message="Of before.")
    page = viewer.text(f"/rl/jobs/{job.pk}")
    assert "No free capacity" in page
    assert "Needs 4 nodes; 1 of 5 is free on fake." in page


def test_stages_have_states_and_durations(viewer, failed):
    page = viewer.text(f"/rl/jobs/{failed.pk}")
    assert "Provisioning : done 1 m 15 s" in page
    assert "Setting up : pending" in page
    assert "Running : failed 1 m 15 s" in page


@pytest.mark.parametrize(
    ("kind", "nodes", "label"),
    [("plain", 1, "Job"), ("plain", 2, "Multi-node job"), ("monarch", 1, "Monarch job")],
)
def test_the_kind_is_what_people_call_it(viewer, project, kind, nodes, label):
    job = make_job(project, kind=kind, num_nodes=nodes)
    assert f"Kind {label} Backend" in viewer.text(f"/rl/jobs/{job.pk}")


def test_a_stage_that_was_ended_on_purpose_is_no_failure(viewer, failed):
    failed.attempts.filter(number=2).update(stop_reason="CANCELLED_BY_USER")
    assert "Running : stopped" in viewer.text(f"/rl/jobs/{failed.pk}")


def test_nodes_events_and_spec_are_on_the_page_without_any_script(viewer, failed):
    page = viewer.text(f"/rl/jobs/{failed.pk}/nodes")
    assert "127.64.1.11:22222" in page
    assert "Lost" in page
    assert "Submitted · mia from 203.0.113.9" in page
    assert "name: hello run: echo hello" in page


@pytest.mark.parametrize("tab", ["log", "events", "charts", "nodes", "spec"])
def test_each_tab_has_an_address_that_opens_it(viewer, failed, tab):
    html = viewer.get(f"/rl/jobs/{failed.pk}/{tab}").content.decode()
    opening = html[html.index(f'id="panel-{tab}"') :].split(">", 1)[0]
    assert "hidden" not in opening
    assert html.count('role="tabpanel"') == 5
    assert (
        sum(" hidden" in part.split(">", 1)[0] for part in html.split('role="tabpanel"')[1:]) == 4
    )


@pytest.mark.parametrize(
    ("tab", "show"),
    [("workers", "grid"), ("hosts", "metrics"), ("mesh", "mesh"), ("stacks", "stacks")],
)
def test_the_address_of_an_old_tab_leads_to_its_view_of_the_nodes(viewer, failed, tab, show):
    response = viewer.get(f"/rl/jobs/{failed.pk}/{tab}", {"attempt": "1", "rank": "1"})
    assert response.status_code == 302
    assert response["Location"] == f"/rl/jobs/{failed.pk}/nodes?attempt=1&rank=1&show={show}"


def test_an_unknown_tab_attempt_or_job_is_not_found(viewer, failed):
    for path in (f"/{failed.pk}/nonsense", f"/{failed.pk}?attempt=9", "/999999", f"/{2**60}"):
        assert viewer.get(f"/rl/jobs{path}").status_code == 404


def test_an_earlier_attempt_can_be_chosen(viewer, failed):
    html = viewer.get(f"/rl/jobs/{failed.pk}", {"attempt": "1"}).content.decode()
    assert 'data-attempt="1"' in html
    assert "ValueError" not in html[: html.index('id="panel-events"')]


def test_a_stranger_finds_no_job(stranger, failed):
    for path in ("", "/live", "/events"):
        assert stranger.get(f"/rl/jobs/{failed.pk}{path}").status_code == 404


def test_the_live_parts_all_stand_in_the_first_paint(viewer, failed):
    whole = viewer.get(f"/rl/jobs/{failed.pk}").content.decode()
    parts = viewer.get(f"/rl/jobs/{failed.pk}/live").content.decode()
    for name in ("job-head", "job-ending", "job-stages", "job-events"):
        assert f'id="{name}"' in whole
        assert f'id="{name}"' in parts


def test_buttons_are_those_of_the_role(viewer, member, maintainer, failed, project):
    running = make_job(project, status=JobStatus.RUNNING, submitted_by=member.user)
    head = {
        browser: browser.get(f"/rl/jobs/{failed.pk}/live").content.decode()
        for browser in (viewer, member, maintainer)
    }
    assert "rerun-form" not in head[viewer] and "delete-button" not in head[viewer]
    assert "rerun-form" in head[member] and "delete-button" not in head[member]
    assert "delete-button" in head[maintainer] and "cancel-button" not in head[maintainer]
    assert "cancel-button" in member.get(f"/rl/jobs/{running.pk}").content.decode()
    assert "cancel-button" not in viewer.get(f"/rl/jobs/{running.pk}").content.decode()


@pytest.mark.feature("P5.5")
def test_a_job_that_waits_says_its_place_who_is_ahead_and_who_has_what_it_needs(
    viewer, project, settings, tmp_path
):
    settings.MPORTAL_FAKE_BACKEND = str(tmp_path)
    FakeBackend(tmp_path).set_capacity(2)
    make_attempt(make_job(project, name="big", status=JobStatus.RUNNING, num_nodes=2))
    make_job(project, name="first", num_nodes=2)
    second = make_job(project, name="second", num_nodes=2, wait_reason="CAPACITY")
    said = text_of(viewer.get(f"/rl/jobs/{second.pk}"))
    assert "Position 2 of 2 in the queue." in said
    assert "the next machines are reserved." in said
    assert re.search(r"Ahead in the queue first #\d+ of", said)


def test_a_plain_job_shows_no_stage_of_workers_though_its_runner_reports_one(viewer, failed):
    attempt = failed.attempts.get(number=2)
    now = timezone.now()
    workers = AttemptStage.objects.create(
        attempt=attempt, name="workers", started_at=now, ended_at=now, detail="nothing to start"
    )
    html = viewer.get(f"/rl/jobs/{failed.pk}").content.decode()
    assert 'id="stage-run"' in html
    assert 'id="stage-workers"' not in html
    AttemptStage.objects.filter(pk=workers.pk).update(failure="A node was lost.")
    assert 'id="stage-workers"' in viewer.get(f"/rl/jobs/{failed.pk}").content.decode()


def test_the_log_of_several_nodes_explains_what_a_rank_is(viewer, failed):
    assert 'id="term-node"' in viewer.get(f"/rl/jobs/{failed.pk}").content.decode()
