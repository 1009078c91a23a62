"""The code editor of pages: its library, its text, and the words that it completes."""

from __future__ import annotations

from typing import Any

from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from jobs.permissions import Actor, project_for
from jobs.readers.names_in_specs import names_in_specs
from jobs.web.base.access import signed_in
from monarch_client.spec import json_schema
from monarch_client.spec.templates import header_schema

# `make setup` takes it from npm, where there is one.
LIBRARY = "jobs/vendor/codemirror/codemirror.js"
# As many lines have their numbers; no specification has more that is not refused for its size.
_MOST_LINES = 5000


def editor_context(source: str, *, original: str = "") -> dict[str, Any]:
    """Return the context of `jobs/_editor.html`. `original`: the text to show changes against."""
    return {
        "source": source,
        "original": original,
        "line_count": range(1, min(source.count("\n"), _MOST_LINES) + 2),
        "library": LIBRARY if finders.find(LIBRARY) else "",
    }


@require_safe
@signed_in
def editor_words(request: HttpRequest, actor: Actor, slug: str) -> HttpResponse:
    """Return the JSON Schemas and the names that the editor completes and explains."""
    names = names_in_specs(actor, project_for(actor, slug))
    return JsonResponse({"job": json_schema(), "header": header_schema(), "names": names})
