"""The answers that are compressed: pages and JSON, and neither streams nor lines of a log."""

from __future__ import annotations

import pytest
from django.http import HttpResponse, StreamingHttpResponse
from django.test import RequestFactory

from monarch_portal.middleware import CompressedAnswers

BODY = b"a line of text " * 100


@pytest.mark.parametrize(
    ("response", "is_compressed"),
    [
        (HttpResponse(BODY, content_type="text/html; charset=utf-8"), True),
        (HttpResponse(BODY, content_type="application/json"), True),
        (HttpResponse(BODY, content_type="text/plain"), False),
        (HttpResponse(BODY, content_type="application/octet-stream"), False),
        (StreamingHttpResponse([BODY], content_type="text/html"), False),
    ],
    ids=["page", "json", "log", "file", "stream"],
)
def test_pages_and_json_are_compressed(response, is_compressed):
    request = RequestFactory().get("/", headers={"accept-encoding": "gzip"})
    answer = CompressedAnswers(lambda _: response)(request)
    assert answer.has_header("Content-Encoding") == is_compressed
