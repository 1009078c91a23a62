"""The API describes itself: OpenAPI without a warning, its page, the schema of a job."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema

from jobs.api.urls import urlpatterns


@pytest.fixture(scope="module")
def schema():
    return SchemaGenerator().get_schema(request=None, public=True)


@pytest.mark.feature("P7.2")
def test_the_description_is_valid_and_made_without_a_warning(schema):
    with GENERATOR_STATS.silence():
        again = SchemaGenerator().get_schema(request=None, public=True)
    assert not GENERATOR_STATS, "see the warnings above"
    validate_schema(again)


def test_every_address_is_described(schema):
    routes = {str(p.pattern) for p in urlpatterns if getattr(p, "name", None)}
    named = {re.sub(r"<\w+:(\w+)>", r"{\1}", route) for route in routes}
    described = {path.removeprefix("/api/v1/") for path in schema["paths"]}
    assert named - described == {"openapi", "docs"}


def test_every_operation_documents_its_problems(schema):
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            if operation.get("security") == [{}] or path.endswith("/schema/job"):
                continue
            assert "401" in operation["responses"], (method, path)
            content = operation["responses"]["401"]["content"]
            assert set(content) == {"application/problem+json"}


def test_names_of_operations_are_unique(schema):
    names = [o["operationId"] for methods in schema["paths"].values() for o in methods.values()]
    assert len(names) == len(set(names))


def test_a_token_is_how_one_signs_in(schema):
    schemes = schema["components"]["securitySchemes"]
    assert {"type": "http", "scheme": "bearer"}.items() <= schemes["token"].items()


def test_the_description_is_public():
    response = Client().get("/api/v1/openapi")
    assert response.status_code == 200
    assert response.json()["openapi"].startswith("3.")


def test_the_schema_of_a_job_is_public():
    response = Client().get("/api/v1/schema/job")
    assert "portal" in response.json()["properties"]


@pytest.mark.django_db  # closing an answer looks at the connection, if there is one
@pytest.mark.feature("P7.2")
def test_the_page_runs_no_inline_script_and_everything_it_loads_is_here():
    http = Client()
    response = http.get("/api/v1/docs")
    html = response.content.decode()
    policy = response["Content-Security-Policy"]
    assert "unsafe-inline" not in policy
    assert "script-src 'self'" in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)", html)
    assert " style=" not in html
    assert "<style" not in html
    loaded = re.findall(r'(?:src|href)="(/static/[^"]+)"', html)
    assert len(loaded) == 3
    for address in loaded:
        answer = http.get(address)
        assert answer.status_code == 200, address
        answer.close()
