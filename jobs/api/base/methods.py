"""The methods of views outside of Django REST framework, which has its own way to refuse others."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from jobs.api.base.errors import problem

ViewT = TypeVar("ViewT", bound=Callable[..., HttpResponseBase])


def only(*methods: str) -> Callable[[ViewT], ViewT]:
    """Return the decorator of a view that takes these methods, and answers 405 to others.

    The view is not for forms, whose check would answer with a page first: it only reads, or takes
    tokens alone.
    """

    def decorate(view: ViewT) -> ViewT:
        @csrf_exempt
        @wraps(view)
        def checked(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
            if request.method in methods:
                return view(request, *args, **kwargs)
            detail = f'Method "{request.method}" not allowed.'
            headers = {"Allow": ", ".join(methods)}
            return problem(405, "method_not_allowed", detail, headers=headers)

        return checked  # type: ignore[return-value]

    return decorate
