"""Secrets of an attempt are masked in all that it reports, before it is stored."""

from __future__ import annotations

import base64
import json
import time

import pytest

from jobs.actions.attempts.end_attempt import close_attempt
from jobs.actions.attempts.hand_secrets import hand_secrets
from jobs.actions.ingest import ingest_frames as ingest
from jobs.actions.ingest.ingest_frames import ingest_frames
from jobs.actions.jobs.history import record_note
from jobs.actions.projects.secrets import set_secret
from jobs.attempt_tokens import attempt_token, driver_token
from jobs.errors import SecretsUnavailableError
from jobs.ground.seals import new_key, sealed
from jobs.logs import handed
from jobs.logs.handed import LineMask, about_attempt, masked_errors, redaction_of
from jobs.logs.reading import read_lines
from jobs.logs.redaction import Redaction, RedactionCache
from jobs.models import Attempt, HandedSecrets, JobEvent, LogBlock, LogHead, MeshTree
from jobs.statuses import Role, StopReason
from tests.factories import make_actor, make_attempt, make_job, make_project, make_spec
from tests.frame_bytes import body, frame, lines
from tests.mesh_frames import host, proc, tree
from tests.task_frames import context, failure, report

pytestmark = pytest.mark.django_db
VALUE = "hunter2-hunter2!"


@pytest.fixture
def attempt(db) -> Attempt:
    """Create an attempt with two nodes that was given a secret."""
    project = make_project()
    set_secret(make_actor(project, Role.MAINTAINER), project, "A", VALUE)
    job = make_job(project, num_nodes=2, spec=make_spec(num_nodes=2, secrets=["A"]))
    made = make_attempt(job)
    hand_secrets(job, made)
    return made


@pytest.fixture(autouse=True)
def cache(monkeypatch):
    """Replace the cache, so that no test finds another test's entry under the same number."""
    monkeypatch.setattr(handed, "_cache", RedactionCache())


@pytest.fixture
def post(attempt):
    token = attempt_token(attempt.job_id, attempt.number)
    return lambda *frames: ingest_frames(attempt.pk, token, body(*frames))


def texts(attempt) -> list[str]:
    return [line.text for line in read_lines(attempt.pk)]


def test_lines_are_stored_without_it(attempt, post):
    post(frame(1, text=f"key={VALUE}"), frame(2, text="harmless"), frame(3, text=VALUE))
    assert texts(attempt) == ["key=***", "harmless", "***"]


def test_a_value_cut_by_requests_is_masked_for_its_own_rank_and_stream(attempt, post):
    post(frame(1, text="a " + VALUE[:7], more=True), frame(1, rank=1, text="b " + VALUE[:7]))
    assert list(LogHead.objects.get().open_ends) == ["0 stdout"]
    post(frame(2, text="r2-", stream="stderr"), frame(2, rank=1, text=VALUE[7:]))
    post(frame(3, text=VALUE[7:9], more=True))
    post(frame(4, text=VALUE[9:] + " end"))
    assert texts(attempt) == ["a ***", "b hunter2", "r2-", VALUE[7:], "***", "*** end"]
    assert LogHead.objects.get().open_ends == {}


def test_frames_sent_twice_do_not_spoil_where_a_line_was_cut(attempt, post):
    first = frame(1, text=VALUE[:7], more=True)
    post(first)
    post(first, frame(2, text=VALUE[7:]))
    assert texts(attempt) == ["***", "***"]


def tokens_of(attempt) -> list[str]:
    numbers = (attempt.pk, attempt.job_id, attempt.number)
    return [attempt_token(*numbers[1:]), driver_token(*numbers)]


@pytest.mark.parametrize("cut", [5, 20, 40])
def test_a_token_of_the_attempt_is_masked_where_its_line_was_cut(db, cut):
    plain = make_attempt()
    runner_token, _ = tokens_of(plain)
    number = 0
    for token in tokens_of(plain):
        for text, more in ((f"a {token[:cut]}", True), (token[cut:], True), (" z", False)):
            number += 1
            content = body(frame(number, text=text, more=more))
            ingest_frames(plain.pk, runner_token, content)
    stored = texts(plain)
    assert len(stored) == 6
    for begin, rest, end in (stored[:3], stored[3:]):
        # The first few characters cannot be recognized; the prefix is public.
        assert begin == "a ***" or (cut == 5 and begin.startswith("a mp"))
        assert (rest, end) == ("***", " z")
    assert LogHead.objects.get(attempt=plain).open_ends == {}


def test_tokens_of_the_attempt_are_masked_when_they_are_encoded(db):
    plain = make_attempt()
    runner_token, token = tokens_of(plain)
    basic = base64.b64encode(f"token:{token}".encode()).decode()
    contents = (basic, token.encode().hex(), runner_token.encode().hex().upper())
    frames = [frame(number, text=f"<{text}>") for number, text in enumerate(contents, 1)]
    ingest_frames(plain.pk, runner_token, body(*frames))
    stored = texts(plain)
    assert stored[1:] == ["<***>", "<***>"]
    assert len(stored[0]) <= len("<***>") + len("dG9rZW46") + 4


def test_the_token_of_a_person_is_masked_where_its_line_was_cut(attempt, post):
    token = "mpt_" + "aB3-_" * 8 + "xyz"
    post(frame(1, text=f"a {token[:30]}", more=True))
    post(frame(2, text=f"{token[30:]} z"))
    assert texts(attempt) == ["a ***", "*** z"]


def test_reports_of_tasks_are_stored_without_it(attempt, post):
    post(report(0, context(failures=[failure(error=f"no {VALUE}", trace=f"in {VALUE}")])))
    (row,) = attempt.task_reports.all()
    assert VALUE not in str(row.latest)


def test_trees_of_meshes_are_stored_without_it(attempt, post):
    post(tree(0, host(0, procs=[proc(state="poisoned", why=f"no {VALUE}")]), why=VALUE))
    row = MeshTree.objects.get()
    assert VALUE not in json.dumps([row.latest, row.changes])
    assert row.changes[0]["why"] == "no ***"


def test_reports_are_stored_without_it(attempt, post):
    post(
        frame(1, "stage", stage="setup", phase="end", ok=False, detail=f"no {VALUE}"),
        frame(2, "worker", status="LOST", detail=f"{VALUE} said", address=VALUE),
        frame(
            3,
            "end",
            reason="USER_CODE",
            message=f"raised {VALUE}",
            hint=f"see {VALUE[:9]}",
            evidence=f"line\n{VALUE}\n{VALUE[4:]}",
        ),
    )
    attempt.refresh_from_db()
    assert (attempt.message, attempt.hint) == ("raised ***", "see ***")
    assert attempt.stages.get(name="setup").failure == "no ***"
    worker = attempt.workers.get(rank=0)
    assert (worker.detail, worker.address) == ("*** said", "***")
    assert JobEvent.objects.get(verb="evidence").message == "line\n***\n***"


def test_what_the_portal_says_itself_is_stored_without_it(attempt):
    record_note(attempt.job, f"the backend said {VALUE}", attempt)
    close_attempt(attempt, StopReason.BACKEND, f"could not start with {VALUE}")
    assert attempt.message == "could not start with ***"
    assert JobEvent.objects.get().message == "the backend said ***"


def test_errors_of_a_backend_reveal_nothing_of_it(attempt):
    with pytest.raises(RuntimeError) as caught, masked_errors(attempt):
        try:
            raise ValueError(f"task: {VALUE}")
        except ValueError as error:
            raise RuntimeError(f"launch: {error}") from error
    assert str(caught.value) == "launch: task: ***"
    assert caught.value.__cause__.args == ("task: ***",)


def test_without_the_key_nothing_is_taken_and_with_it_everything(attempt, post, settings):
    keys, settings.MPORTAL_SECRET_KEYS = settings.MPORTAL_SECRET_KEYS, [new_key()]
    with pytest.raises(SecretsUnavailableError):
        post(*lines(1, 3))
    assert not LogBlock.objects.exists()
    settings.MPORTAL_SECRET_KEYS = keys
    assert post(*lines(1, 3)) == {"0": 3}


def test_secrets_are_opened_once_for_many_requests(attempt, post, django_assert_num_queries):
    post(*lines(1, 1))
    known = redaction_of(attempt)
    with django_assert_num_queries(0):
        assert redaction_of(attempt) is known


def test_an_attempt_without_secrets_costs_no_query_more(django_assert_num_queries):
    plain = make_attempt()
    with django_assert_num_queries(0):
        redaction_of(plain)


def test_a_job_with_secrets_is_taken_in_quickly(attempt, post):
    frames = lines(1, 5000, text=f"step 3 loss=0.4431 {json.dumps({'rank': 0, 'lr': 3e-4})}")
    content = body(*frames)
    token = attempt_token(attempt.job_id, attempt.number)
    begun = time.process_time()
    ingest_frames(attempt.pk, token, content)
    assert time.process_time() - begun < 1.0


def test_masking_comes_before_any_lock(attempt, post, monkeypatch):
    order: list[str] = []
    monkeypatch.setattr(LineMask, "texts", noted(order, "mask", LineMask.texts))
    monkeypatch.setattr(Redaction, "excerpt", noted(order, "mask", Redaction.excerpt))
    lock = noted(order, "lock", ingest.locked_head)
    monkeypatch.setattr(ingest, "locked_head", lock)
    post(frame(1, text=VALUE), frame(2, "stage", stage="setup", phase="end", detail=VALUE))
    assert order == ["mask", "mask", "lock"]


def noted(order: list[str], word: str, call):
    """Return `call`, which adds `word` to `order` first."""

    def noting(*values):
        order.append(word)
        return call(*values)

    return noting


def test_frames_that_come_meanwhile_are_seen(attempt, post, monkeypatch):
    sift, first = ingest.sift_frames, frame(1, text="a " + VALUE[:7], more=True)
    monkeypatch.setattr(ingest, "sift_frames", lambda *facts: _sift_late(sift, post, first, facts))
    assert post(first, frame(2, text=VALUE[7:])) == {"0": 2}
    assert texts(attempt) == ["a ***", "***"]


def _sift_late(sift, post, first, facts):
    """Return what `sift` does; at first another request stores `first` before it is used."""
    news = sift(*facts)
    ingest.sift_frames = sift
    if not facts[1].acked and len(facts[2]) > 1:
        post(first)
    return news


def test_attempts_without_secrets_share_their_masks(db):
    assert redaction_of(make_attempt()) is redaction_of(make_attempt())


def test_a_long_value_and_a_long_line_take_a_moment(attempt):
    values = sealed(json.dumps({"A": "ab" * 9001}), about=about_attempt(attempt.pk))
    HandedSecrets.objects.update(sealed=values)
    token = attempt_token(attempt.job_id, attempt.number)
    # 320 KiB.
    frames = [frame(number, text="ab" * 16_384, more=number < 10) for number in range(1, 11)]
    begun = time.process_time()
    ingest_frames(attempt.pk, token, body(*frames))
    assert time.process_time() - begun < 3.0
    assert texts(attempt) == ["***"] * 10
