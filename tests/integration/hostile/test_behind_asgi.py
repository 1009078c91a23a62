"""The web server answers as Django alone does: middleware, sessions, hosts and files."""

from __future__ import annotations

import httpx
import pytest
from django.test import Client

from tests.factories import make_user

PASSWORD = "correct horse battery"
OF_MIDDLEWARE = (
    "Content-Security-Policy",
    "X-Frame-Options",
    "X-Content-Type-Options",
    "Referrer-Policy",
    "Cross-Origin-Opener-Policy",
    "Content-Length",
    "Cache-Control",
)


@pytest.mark.parametrize("path", ["/sign-in", "/livez", "/api/v1/nothing", "/no/such/page"])
def test_an_answer_has_the_same_headers_as_without_an_event_loop(web, path):
    live, plain = httpx.get(f"{web}{path}", timeout=60), Client().get(path)
    assert live.status_code == plain.status_code
    for name in OF_MIDDLEWARE:
        if name == "Content-Length":
            assert (name in live.headers) == (name in plain.headers)
        else:
            assert live.headers.get(name) == plain.headers.get(name), name


def test_another_host_name_is_refused(web):
    answer = httpx.get(f"{web}/", headers={"host": "portal.lan"}, timeout=60)
    assert answer.status_code == 400
    assert "ALLOWED_HOSTS" in answer.text
    assert "Content-Security-Policy" in answer.headers


def test_a_file_is_served_whole_once_and_not_again_while_it_is_the_same(web):
    address = f"{web}/static/jobs/css/base.css"
    found = httpx.get(address, timeout=60)
    assert found.headers["Content-Type"].startswith("text/css")
    assert len(found.content) == int(found.headers["Content-Length"]) > 1000
    assert httpx.head(address, timeout=60).content == b""
    known = {"If-Modified-Since": found.headers["Last-Modified"]}
    assert httpx.get(address, headers=known, timeout=60).status_code == 304


def test_a_form_without_its_token_is_refused_and_with_it_the_session_is_kept(web):
    make_user("ada", password=PASSWORD)
    with httpx.Client(base_url=web, headers={"Referer": f"{web}/sign-in"}, timeout=60) as visitor:
        form = {"username": "ada", "password": PASSWORD}
        assert visitor.post("/sign-in", data=form).status_code == 403
        visitor.get("/sign-in")
        token = next(value for name, value in visitor.cookies.items() if "csrf" in name)
        form["csrfmiddlewaretoken"] = token
        assert visitor.post("/sign-in", data=form).status_code == 302
        assert any("session" in name for name in visitor.cookies)
        assert visitor.get("/settings/tokens").status_code == 200
    with httpx.Client(base_url=web, timeout=60) as stranger:
        assert stranger.get("/settings/tokens").status_code == 302
