"""A dishonest runner: its job's own code knows its token, and may post with it what it likes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.test.utils import override_settings

from jobs.api.urls import urlpatterns
from jobs.attempt_tokens import attempt_token, driver_token
from jobs.logs.reading import read_lines
from jobs.models import Attempt, Job, LogBlock, LogHead, Worker
from jobs.statuses import Role
from tests.each_case import check_each
from tests.factories import make_member
from tests.frame_bytes import body, frame, lines
from tests.integration.api.conftest import assert_problem
from tests.integration.hostile.runners import post, token_of
from tests.undone import undone

pytestmark = pytest.mark.django_db


def state_of(attempt: Attempt) -> list[Any]:
    """Return all that frames could change about an attempt and its job."""
    pk = attempt.pk
    rows = (Attempt.objects.filter(pk=pk), Job.objects.filter(pk=attempt.job_id))
    rows += (Worker.objects.filter(attempt_id=pk), LogHead.objects.filter(pk=pk))
    return [list(row.values()) for row in rows] + [LogBlock.objects.filter(attempt_id=pk).count()]


def forgeries(attempt: Attempt, neighbour: Attempt) -> dict[str, str]:
    with override_settings(SECRET_KEY="another installation's " * 3):
        elsewhere = token_of(attempt)
    return {
        "made up": "mpa_" + "0" * 64,
        "of another job": token_of(neighbour),
        "of the next attempt": attempt_token(attempt.job_id, attempt.number + 1),
        "of another installation": elsewhere,
        "cut short": token_of(attempt)[:-1],
        "the digest that is stored": attempt.token_digest,
        "in capitals": token_of(attempt).upper(),
    }


def test_only_the_attempts_own_token_posts_for_it(attempt, neighbour) -> None:
    before = state_of(attempt)
    for token in forgeries(attempt, neighbour).values():
        assert_problem(post(attempt, body(frame(1)), token), 403, "permission_denied")
    assert post(attempt, body(frame(1)), "\u00e4").status_code in {401, 403}
    assert post(attempt, body(frame(1)), "").status_code == 401
    assert state_of(attempt) == before


PUBLIC = {"docs", "openapi", "schema/job"}


def routes() -> list[str]:
    """List the routes of the API that take a token."""
    return sorted({str(p.pattern) for p in urlpatterns if getattr(p, "name", None)} - PUBLIC)


def test_an_attempts_token_opens_nothing_but_its_frames(attempt, settings) -> None:
    # How often one address may try is another test's; there are more routes than that.
    settings.MPORTAL_TRIES_PER_ADDRESS = 0
    http = Client(headers={"Authorization": f"Bearer {token_of(attempt)}"})

    def check(route: str) -> None:
        for method, answer in answers(http, attempt, route):
            if route.endswith("frames"):
                assert answer.status_code == (200 if method == "post" else 405), method
            else:
                assert answer.status_code in {401, 405}, method

    check_each(routes(), check)


JOB = "projects/<slug:slug>/jobs/<int:job_id>"
ARRAY = "projects/<slug:slug>/arrays/<int:array_id>"
# What a job's own program may ask; all other jobs than its children it does not find.
FOR_PROGRAMS = {
    "projects/<slug:slug>/jobs": {"get": 200, "post": 400},
    "projects/<slug:slug>/jobs/validate": {"post": 400},
    "projects/<slug:slug>/jobs/batch": {"post": 400},
    "projects/<slug:slug>/jobs/actions": {"post": 400},
    "projects/<slug:slug>/uploads": {"post": 415},
    "projects/<slug:slug>/uploads/<slug:digest>": {"get": 404},
    JOB: {"get": 404, "delete": 404},
    f"{JOB}/actions/cancel": {"post": 404},
    f"{JOB}/attempts": {"get": 404},
    f"{JOB}/events": {"get": 404},
    f"{JOB}/logs": {"get": 404},
    f"{JOB}/logs/stream": {"get": 404},
    ARRAY: {"get": 404},
    f"{ARRAY}/actions/cancel": {"post": 404},
}


@pytest.mark.feature("S2.6")
def test_a_programs_token_opens_nothing_but_its_children(attempt, settings) -> None:
    settings.MPORTAL_TRIES_PER_ADDRESS = 0
    token = driver_token(attempt.pk, attempt.job_id, attempt.number)
    http = Client(headers={"Authorization": f"Bearer {token}"})

    def check(route: str) -> None:
        for method, answer in answers(http, attempt, route, "text/odd"):
            expected = FOR_PROGRAMS.get(route, {}).get(method)
            if route.endswith("frames") and method == "post":
                expected = 403
            wanted = {401, 405} if expected is None else {expected}
            assert answer.status_code in wanted, (method, answer.content)

    check_each(routes(), check)


def answers(
    http: Client, attempt: Attempt, route: str, content_type: str = "application/json"
) -> Iterator[tuple[str, Any]]:
    """Yield a route's answer to each method, for the attempt and its job."""
    parts = {"slug": "rl", "job_id": attempt.job_id, "attempt_id": attempt.pk}
    path = route
    others = {
        "digest": "a" * 64,
        "token_id": 1,
        "array_id": 1,
        "schedule_name": "nightly",
        "view_id": 1,
        "template_name": "hello-mesh",
        "name": "big",
        "quota_id": 1,
        "session_id": 1,
    }
    for name, value in {**parts, **others}.items():
        for kind in ("slug", "int"):
            path = path.replace(f"<{kind}:{name}>", str(value))
    for method in ("get", "post", "delete"):
        options = {} if method == "get" else {"data": b"", "content_type": content_type}
        with undone():
            answer = getattr(http, method)(f"/api/v1/{path}", **options)
        yield method, answer


def test_frames_posted_again_change_nothing(attempt) -> None:
    sent = body(
        *lines(1, 3), frame(4, "stage", stage="run", phase="begin"), frame(5, "exit", exit_code=1)
    )
    assert post(attempt, sent).status_code == 200
    before = state_of(attempt)[2:]
    for _ in range(3):
        assert post(attempt, sent).json() == {"acked": {"0": 5}}
    assert state_of(attempt)[2:] == before


UNSOUND: dict[str, dict[str, Any]] = {
    "another's rank": {"rank": 2},
    "a rank far beyond": {"rank": 2**62},
    "a negative rank": {"rank": -1},
    "a rank as a float": {"rank": 0.0},
    "a rank as a truth": {"rank": False},
    "a rank as text": {"rank": "0"},
    "number nought": {"seq": 0},
    "a negative number": {"seq": -(2**62)},
    "a number far beyond": {"seq": 2**62},
    "a number as a float": {"seq": 1.0},
    "a number as a truth": {"seq": True},
    "no time": {"t": None},
    "a time beyond all": {"t": 1e308},
    "a time before all": {"t": -1},
    "a time that is no number": {"t": float("nan")},
    "a time without end": {"t": float("inf")},
    "an unknown kind": {"kind": "shutdown"},
    "a text too long": {"text": "x" * 70_000},
    "a list for a text": {"text": ["x"]},
}


def test_a_frame_that_is_not_sound_is_refused_with_all_that_came_with_it(attempt) -> None:
    before = state_of(attempt)

    def check(name: str) -> None:
        raw = body(frame(1), {**frame(2), **UNSOUND[name]})
        with undone():
            assert_problem(post(attempt, raw), 400, "invalid_frame")
            assert state_of(attempt) == before

    check_each(UNSOUND, check)


def test_a_gap_however_wide_is_one_line_and_numbers_that_go_back_are_none(attempt) -> None:
    far = {**frame(1), "seq": 2**53 - 1}
    assert post(attempt, body(far)).json() == {"acked": {"0": 2**53 - 1}}
    assert post(attempt, body(*lines(1, 500))).json() == {"acked": {"0": 2**53 - 1}}
    reported = read_lines(attempt.pk)
    assert len(reported) == 2
    assert "never arrived" in reported[0].text


def test_each_rank_has_its_own_numbers_and_a_forged_rank_spoils_only_its_own_job(
    attempt, neighbour
) -> None:
    before = state_of(neighbour)
    forged = body(frame(1, rank=1), frame(2, "exit", rank=1, exit_code=0))
    assert post(attempt, forged).json() == {"acked": {"1": 2}}
    assert post(attempt, body(frame(1))).json() == {"acked": {"0": 1, "1": 2}}
    assert state_of(neighbour) == before


def test_an_early_end_ends_the_attempt_that_reported_it_and_no_other(attempt, neighbour) -> None:
    before = state_of(neighbour)
    early = body(frame(1, "end", reason="COMPLETED", exit_code=0, message="<b>all good</b>"))
    assert post(attempt, early).status_code == 200
    again = body(frame(2, "end", reason="USER_CODE", exit_code=7))
    assert post(attempt, again).status_code == 200
    attempt.refresh_from_db()
    assert (attempt.stop_reason, attempt.exit_code) == ("COMPLETED", 0)
    assert state_of(neighbour) == before


def test_a_runner_gives_no_verdict_that_is_the_portals(attempt) -> None:
    def check(reason: str) -> None:
        with undone():
            answer = post(attempt, body(frame(1, "end", reason=reason)))
        assert_problem(answer, 400, "invalid_frame")

    check_each(["BUDGET", "TIMEOUT", "PORTAL", "PREEMPTED", "SUCCEEDED", ""], check)


ODD_ORDERS = {
    "an end before everything": ["end", "stage", "worker", "exit", "line"],
    "twice each": ["stage", "stage", "worker", "worker", "exit", "exit", "end", "end"],
    "an end of what never began": ["stage-end", "exit", "end"],
    "beginnings after the end": ["end", "stage", "stage-end", "worker"],
}
_OF_KIND: dict[str, dict[str, Any]] = {
    "line": {},
    "stage": {"kind": "stage", "stage": "run", "phase": "begin"},
    "stage-end": {"kind": "stage", "stage": "run", "phase": "end"},
    "worker": {"kind": "worker", "status": "RUNNING"},
    "exit": {"kind": "exit", "exit_code": 3},
    "end": {"kind": "end", "reason": "COMPLETED"},
}


@pytest.mark.parametrize("name", ODD_ORDERS)
@pytest.mark.parametrize("at_once", [True, False])
def test_reports_in_any_order_and_number_are_taken(attempt, name, at_once) -> None:
    frames = [
        frame(seq, **{"kind": "line", **_OF_KIND[kind]})
        for seq, kind in enumerate(ODD_ORDERS[name], 1)
    ]
    for raw in [body(*frames)] if at_once else [body(each) for each in frames]:
        answer = post(attempt, raw)
        assert answer.status_code == 200, answer.content
    attempt.refresh_from_db()
    assert attempt.stages.count() <= 1
    assert Worker.objects.filter(attempt=attempt).count() <= 1
    if name != "twice each":
        assert attempt.ended_at


def test_text_of_any_kind_is_kept_as_text(attempt) -> None:
    odd = ["\ud800", "\x00", "\x1b[2J", "a\nb", "\u202e", "<script>", "\r\n\r\nHTTP/1.1 200"]
    assert post(attempt, body(*(frame(n, text=t) for n, t in enumerate(odd, 1)))).status_code == 200
    reports = [
        frame(10 + n, "worker", status="READY", detail=t, mesh=t, address=t, python=t)
        for n, t in enumerate(odd)
    ]
    ending = frame(30, "end", reason="USER_CODE", message="\ud800\0", hint="\0", evidence="\ud800")
    assert post(attempt, body(*reports, ending)).status_code == 200
    assert len(read_lines(attempt.pk)) == len(odd) + 2  # and two gaps
    viewer = Client()
    viewer.force_login(make_member(attempt.job.project, Role.VIEWER))
    base = f"/api/v1/projects/rl/jobs/{attempt.job_id}"
    for path in (
        f"{base}/logs",
        f"{base}/attempts",
        f"{base}/events",
        f"/rl/jobs/{attempt.job_id}",
    ):
        assert viewer.get(path).status_code == 200


def test_after_the_end_an_attempt_whose_machines_are_gone_takes_nothing(attempt) -> None:
    post(attempt, body(frame(1, "end", reason="COMPLETED")))
    Attempt.objects.filter(pk=attempt.pk).update(cluster=None)
    before = state_of(attempt)
    assert_problem(post(attempt, body(frame(2))), 410, "attempt_closed")
    assert state_of(attempt) == before
