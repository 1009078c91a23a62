"""Names that people choose never hide behind a fixed address of the portal."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.urls import URLPattern, URLResolver, get_resolver

from jobs.actions.accounts.bootstrap import FIRST_PROJECT
from jobs.models import Project
from jobs.models.project import RESERVED_SLUGS
from tests.each_case import check_each
from tests.factories import make_user
from tests.integration.api.conftest import assert_problem, caller_for

_PARAMETER = re.compile(r"<(?:(\w+):)?(\w+)>")
# Parts of addresses that the portal names itself, and which fixed words stand beside them.
CLOSED = {"kind": {"check"}}


def routes(resolver: URLResolver, prefix: str = "") -> Iterator[str]:
    """Yield the address of every route, with its parameters as written."""
    for each in resolver.url_patterns:
        if isinstance(each, URLResolver):
            yield from routes(each, prefix + str(each.pattern))
        elif isinstance(each, URLPattern):
            yield prefix + str(each.pattern)


def words_beside_names() -> dict[str, set[str]]:
    """Map each text parameter to the fixed words that other routes have in its position."""
    split = [route.split("/") for route in routes(get_resolver())]
    words: dict[tuple[str, ...], set[str]] = defaultdict(set)
    names: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for segments in split:
        for position, segment in enumerate(segments):
            before = tuple(_PARAMETER.sub("<>", part) for part in segments[:position])
            if found := _PARAMETER.fullmatch(segment):
                if found[1] != "int":
                    names[before].add(found[2])
            elif segment:
                words[before].add(segment)
    beside: dict[str, set[str]] = defaultdict(set)
    for before, parameters in names.items():
        for parameter in parameters:
            beside[parameter] |= words[before]
    return {parameter: found for parameter, found in beside.items() if found}


def test_every_fixed_word_beside_a_chosen_name_is_reserved():
    beside = words_beside_names()
    # The tab of a job is the portal's own word, and so are those beside it.
    del beside["tab"]
    # Static files and the gateway's streams come before the routes.
    beside["slug"] |= {settings.STATIC_URL.strip("/"), "gateway"}
    assert beside == {"slug": set(RESERVED_SLUGS), **CLOSED}


def test_the_first_project_has_a_name_that_is_free():
    assert FIRST_PROJECT not in RESERVED_SLUGS


@pytest.mark.django_db
def test_no_project_is_made_with_a_reserved_name():
    root = caller_for(make_user(is_superuser=True))

    def check(slug: str) -> None:
        answer = root.send("POST", "/projects", {"slug": slug})
        assert_problem(answer, 422, "invalid_settings")
        assert "reserved" in answer.json()["errors"][0]["message"]
        assert not Project.objects.filter(slug=slug).exists()

    check_each(sorted(RESERVED_SLUGS), check)
