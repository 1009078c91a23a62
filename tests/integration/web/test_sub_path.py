"""A portal that is published below a path: whatever it answers leads there, and nowhere beside."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from jobs.actions.accounts.sign_in_links import create_sign_in_link
from jobs.models import Job, User
from jobs.statuses import JobStatus
from monarch_client.rest.client import PortalClient
from tests.factories import make_attempt, make_job, make_member, make_project, make_token
from tests.web_process import WebProcess

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = "/portal"
ADDRESS = re.compile(r'(?:href|src|action|data-[a-z-]+)="(/[^"]*)"')


@pytest.fixture
def web(tmp_path: Path, redis_client: object) -> Iterator[WebProcess]:
    process = WebProcess(
        tmp_path, MPORTAL_URL=f"http://127.0.0.1{ROOT}", MPORTAL_LOCAL_BACKEND="true"
    )
    process.start()
    yield process
    process.close()


@pytest.fixture
def user() -> User:
    return make_member(make_project("rl"))


@pytest.fixture
def job(user: User) -> Job:
    project = user.memberships.get().project
    job = make_job(project, submitted_by=user, status=JobStatus.CANCELLED)
    make_attempt(job)
    return job


def test_pages_redirects_and_cookies_stay_below_the_path(web: WebProcess, user: User, job: Job):
    with httpx.Client(base_url=web.url) as visitor:
        first = visitor.get(f"{ROOT}/rl/jobs")
        assert first.headers["Location"] == f"{ROOT}/sign-in?next={ROOT}/rl/jobs"
        assert "Path=/portal;" in visitor.get(f"{ROOT}/sign-in").headers["Set-Cookie"]
        link = f"{ROOT}/sign-in/once/{create_sign_in_link(user)}"
        token = re.search(r'name="csrfmiddlewaretoken"\s+value="(\w+)"', visitor.get(link).text)
        assert token
        form = {"csrfmiddlewaretoken": token[1], "next": "/elsewhere"}
        signed_in = visitor.post(link, data=form)
        assert signed_in.headers["Location"].startswith(f"{ROOT}/settings/password")
        assert all("Path=/portal;" in c for c in signed_in.headers.get_list("Set-Cookie"))
        for path in ("", "/", "/rl/jobs", f"/rl/jobs/{job.pk}", "/rl/jobs/new", "/api/v1/docs"):
            page = visitor.get(ROOT + path, follow_redirects=True)
            assert page.status_code == 200, path
            found = ADDRESS.findall(page.text)
            assert found, path
            assert [each for each in found if not f"{each}/".startswith(f"{ROOT}/")] == [], path
            for each in found:
                if each.startswith(f"{ROOT}/static/"):
                    assert visitor.get(each.partition("#")[0]).status_code == 200, each


def test_rest_the_client_and_streams_work_below_the_path(web: WebProcess, user: User, job: Job):
    url, secret = web.url + ROOT, make_token(user)[1]
    with PortalClient(url, secret) as client:
        assert client.job("rl", job.pk).url == f"{url}/rl/jobs/{job.pk}"
        assert client.me().username == user.username
    headers: dict[str, Any] = {"Authorization": f"Bearer {secret}"}
    with httpx.Client(base_url=url, headers=headers) as program:
        stream = program.get(f"/api/v1/projects/rl/jobs/{job.pk}/logs/stream")
        assert "event: end" in stream.text
        again = program.post(f"/api/v1/projects/rl/jobs/{job.pk}/actions/rerun")
        assert again.status_code == 201, again.text
        assert again.headers["Location"].startswith(f"{ROOT}/api/v1/projects/rl/jobs/")
        assert program.get("/api/v1/openapi").json()["servers"] == [{"url": ROOT}]


def test_health_checks_need_not_know_the_path(web: WebProcess):
    assert (
        httpx.get(f"{web.url}/healthz").text == httpx.get(f"{web.url}{ROOT}/healthz").text == "ok\n"
    )


def test_a_proxys_header_changes_no_link(web: WebProcess):
    forged = {"X-Forwarded-Prefix": "/forged", "X-Script-Name": "/forged"}
    assert "/forged" not in httpx.get(f"{web.url}{ROOT}/sign-in", headers=forged).text
