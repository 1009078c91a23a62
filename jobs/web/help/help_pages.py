"""The documentation that is shipped with the portal, and what is new in it."""

from __future__ import annotations

from mimetypes import guess_type

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from jobs.permissions import Actor
from jobs.web.base.access import signed_in
from jobs.web.base.document_search import MOST_FOUND, search_documents
from jobs.web.base.documents import rendered, shipped, title_of
from jobs.web.base.frame import render_page
from jobs.web.base.news import CHANGELOG, SEEN, news

SEEN_AGE = 365 * 24 * 3600
MOST_LETTERS = 200  # of a query


@require_safe
@signed_in
def page(request: HttpRequest, actor: Actor, name: str) -> HttpResponse:
    """Show a page of the documentation, or one of its pictures or schemas."""
    path = shipped().get(name)
    if path is None:
        raise Http404(f"There is no page {name} in the documentation.")
    if path.suffix != ".md":
        return HttpResponse(path.read_bytes(), content_type=guess_type(name)[0])
    context = {"title": title_of(name), "document": rendered(name)}
    return render_page(request, actor, "help/page.html", context)


@require_safe
@signed_in
def search(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Show the sections of the documentation that have the words of the query."""
    query = request.GET.get("q", "")[:MOST_LETTERS]
    found = search_documents(query)
    context = {"query": query, "found": found, "is_cut": len(found) == MOST_FOUND}
    return render_page(request, actor, "help/search.html", context)


@require_safe
@signed_in
def whats_new(request: HttpRequest, actor: Actor) -> HttpResponse:
    """Show what is new, and remember that the user has seen it."""
    found = news()
    request.COOKIES[SEEN] = found.digest
    context = {"title": "What's new", "document": found.html, "changelog": CHANGELOG}
    response = render_page(request, actor, "help/page.html", context)
    path = settings.SESSION_COOKIE_PATH
    response.set_cookie(SEEN, found.digest, SEEN_AGE, path=path, samesite="Lax")
    return response
