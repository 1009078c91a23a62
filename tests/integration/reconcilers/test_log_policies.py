"""Effects of log lines: notes, ends, no further attempt, and nodes that are avoided."""

from __future__ import annotations

import pytest
from zstandard import ZstdError

from jobs.actions.attempts.apply_log_policies import apply_log_policies
from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.attempt_tokens import attempt_token
from jobs.backends.fake.backend import FakePlan
from jobs.errors import LogStoreAwayError, PortalBusyError
from jobs.logs.lines import LogLine
from jobs.logs.searching import FoundLine, Stretch
from jobs.models import Attempt, Cluster, Job, JobEvent, LogWatch
from jobs.policies.log_rules import MOST_TOLD, rules_of
from jobs.reconcilers import log_policies
from jobs.reconcilers.running import LONGEST_LOOK
from jobs.statuses import FINAL_STATUSES, JobKind, JobStatus, StopReason
from tests.factories import make_job, make_spec
from tests.frame_bytes import body, frame
from tests.integration.reconcilers.steps import later, push, status_of

pytestmark = pytest.mark.django_db

ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB"
NAN = {"name": "loss_is_nan", "pattern": r"loss is (nan|inf)\b", "actions": ["fail"]}


@pytest.fixture
def begin(fake, tick, project):
    """Return a function that starts a job that prints lines; it ends with `exit_code`, or never."""

    def start(*lines: str, exit_code: int | None = None, **portal) -> Job:
        run_s = None if exit_code is None else 0
        fake.set_plan(FakePlan(lines=lines, run_s=run_s, exit_code=exit_code or 0))
        job = make_job(project, backend_name="fake", spec=make_spec(portal=portal))
        tick()
        push(fake, job)
        return job

    return start


def look() -> None:
    for row_id in log_policies.due():
        log_policies.step(row_id)


def notes(job: Job) -> list[JobEvent]:
    return list(job.events.filter(verb="log_policy").order_by("pk"))


def newest(job: Job) -> Attempt:
    return job.attempts.order_by("-number")[0]


def say(job: Job, *texts: str, first: int = 1000) -> None:
    """Send further lines of the newest attempt's rank 0, after any earlier ones."""
    attempt = newest(job)
    frames = [frame(first + number, text=text) for number, text in enumerate(texts)]
    ingest_frames(attempt.pk, attempt_token(job.pk, attempt.number), body(*frames))


@pytest.mark.feature("P3.4")
def test_a_line_is_noted_with_its_number_while_the_job_runs(begin, tick):
    job = begin("step 1", "OSError: [Errno 28] No space left on device: '/ckpt'", "step 2")
    look()
    (note,) = notes(job)
    assert (note.line, note.attempt) == (2, newest(job))
    assert note.message == (
        "A disk is full (rank 0): OSError: [Errno 28] No space left on device: '/ckpt'"
    )
    tick()
    assert status_of(job) == JobStatus.RUNNING


@pytest.mark.feature("P3.4")
def test_a_planted_ecc_line_has_the_next_attempt_avoid_the_node(begin, tick, fake, time_machine):
    job = begin("step 1", ECC, exit_code=1, retry={"max_attempts": 2})
    tick()
    assert status_of(job) == JobStatus.RECOVERING
    (note,) = notes(job)
    assert note.message.endswith(f"{ECC} Further attempts avoid the node fake-node.")
    later(time_machine, seconds=30)
    for _ in range(3):
        tick()
    assert newest(job).number == 2
    assert fake.avoided(newest(job).cluster.name) == ["fake-node"]


def test_a_cluster_with_such_a_node_is_not_kept_for_the_next_job(begin, tick):
    job = begin(ECC, exit_code=1, reuse=True, idle={"minutes": 10})
    tick()
    assert status_of(job) == JobStatus.FAILED
    cluster = Cluster.objects.get(attempts__job=job)
    assert cluster.idle_since is None
    assert cluster.release_requested_at is not None


@pytest.mark.feature("P3.4")
def test_a_failure_that_would_only_come_again_is_not_tried_again(begin, tick):
    job = begin(OOM, exit_code=1, retry={"max_attempts": 5})
    tick()
    assert status_of(job) == JobStatus.FAILED
    assert job.attempts.count() == 1
    assert notes(job)[0].message.endswith("The job is not tried again if this attempt fails.")


def test_it_is_tried_again_where_the_job_says_that_such_lines_only_are_to_be_noted(begin, tick):
    mild = {"name": "cuda_oom", "actions": ["annotate"]}
    job = begin(OOM, exit_code=1, retry={"max_attempts": 5}, log_policies=[mild])
    tick()
    assert status_of(job) == JobStatus.RECOVERING


def test_a_lost_machine_is_another_matter(begin, tick, fake, time_machine):
    job = begin(OOM)
    look()
    fake.lose(newest(job).cluster.name)
    later(time_machine, seconds=30)
    for _ in range(2):
        tick()
    assert status_of(job) == JobStatus.RECOVERING


@pytest.mark.feature("P3.4")
def test_a_line_can_end_its_job_as_failed_at_once_and_is_named(begin, tick, fake):
    job = begin("loss is 0.4", "loss is nan", log_policies=[NAN], retry={"max_attempts": 5})
    tick()
    assert status_of(job) == JobStatus.RUNNING
    look()
    assert status_of(job) == JobStatus.STOPPING
    tick()
    push(fake, job)
    tick()
    assert status_of(job) == JobStatus.FAILED
    assert job.stop_reason == StopReason.LOG_POLICY
    assert job.message == "Line 2 ended it. loss_is_nan (rank 0): loss is nan"
    assert "portal.log_policies" in job.hint
    assert job.attempts.count() == 1


def test_a_program_that_ends_before_the_first_check_does_not_escape(begin, tick):
    job = begin("loss is nan", exit_code=0, log_policies=[NAN])
    for _ in range(2):
        tick()
    assert status_of(job) == JobStatus.FAILED
    assert job.stop_reason == StopReason.LOG_POLICY


def test_lines_that_come_later_are_looked_at_and_none_a_second_time(begin):
    job = begin("step 1", "ENOSPC")
    look()
    look()
    assert log_policies.due() == []
    say(job, "step 2", "ENOSPC again")
    assert log_policies.due() == [newest(job).pk]
    look()
    # Between them is the portal's own line about the missing numbers.
    assert [note.line for note in notes(job)] == [2, 5]


def test_of_two_readers_of_the_same_lines_one_reports_them(begin):
    job = begin("ENOSPC")
    attempt = newest(job)
    LogWatch.objects.create(attempt=attempt)
    rules = rules_of(())
    place = [rule.name for rule in rules].index("disk_full")
    line = LogLine(1, 0, "stdout", 0, "ENOSPC")
    stretch = Stretch([FoundLine(line, [], [place])], last=1, is_cut=False)
    for _ in range(2):
        apply_log_policies(attempt, 1, stretch, rules)
    assert len(notes(job)) == 1


def test_a_rule_that_always_fits_is_reported_a_few_times_and_the_whole_log_is_passed(begin):
    job = begin(*["ENOSPC"] * 500)
    for _ in range(5):
        look()
    found = notes(job)
    assert len(found) == MOST_TOLD
    assert found[-1].message.endswith("Further lines of this kind are not reported.")
    assert log_policies.due() == []


def test_several_rules_may_fit_one_line(begin):
    both = {"name": "mine", "pattern": "^OSError", "actions": ["annotate"]}
    job = begin("OSError: No space left on device", log_policies=[both])
    look()
    assert {note.message.partition(" (")[0] for note in notes(job)} == {"A disk is full", "mine"}


def test_colors_do_not_hide_a_line_and_are_not_shown(begin):
    job = begin("\x1b[31mNo space\x1b[0m left on device")
    look()
    assert notes(job)[0].message == "A disk is full (rank 0): No space left on device"


def test_a_pattern_that_is_no_longer_valid_keeps_no_job_from_its_end(begin, tick):
    broken = {"name": "broken", "pattern": "(", "actions": ["fail"]}
    job = begin("step 1", exit_code=0, log_policies=[broken])
    for _ in range(2):
        tick()
    assert status_of(job) == JobStatus.SUCCEEDED
    (note,) = notes(job)
    assert note.message.startswith("Log policies are not looked for any more")


@pytest.mark.parametrize(
    "error",
    [PortalBusyError(), LogStoreAwayError(), FileNotFoundError("a chunk"), ZstdError("damaged")],
)
def test_where_the_log_is_unreadable_a_verdict_waits_for_a_while_and_not_for_ever(
    begin, tick, monkeypatch, time_machine, error
):
    def refuse(*_: object) -> Stretch:
        raise error

    monkeypatch.setattr(log_policies, "search_after", refuse)
    job = begin("step 1", exit_code=0)
    tick()
    assert status_of(job) not in FINAL_STATUSES
    later(time_machine, seconds=LONGEST_LOOK.total_seconds() + 1)
    tick()
    assert status_of(job) == JobStatus.SUCCEEDED


@pytest.mark.parametrize("exit_code", [0, 1])
def test_a_line_with_what_the_database_does_not_take_is_noted_and_the_job_ends(
    begin, tick, exit_code
):
    job = begin(f"{OOM} \0 \ud800", exit_code=exit_code)
    tick()
    assert status_of(job) == (JobStatus.FAILED if exit_code else JobStatus.SUCCEEDED)
    (note,) = notes(job)
    assert "Tried to allocate 20.00 GiB \N{REPLACEMENT CHARACTER}" in note.message


def test_a_driver_that_repeats_an_actors_error_has_no_node_avoided(begin, tick):
    job = begin("step 1")
    Job.objects.filter(pk=job.pk).update(kind=JobKind.MONARCH, num_nodes=2)
    say(job, ECC)
    look()
    (note,) = notes(job)
    assert "No node is avoided for it" in note.message
    assert LogWatch.objects.get(attempt=newest(job)).avoided == []
