"""The endpoint for the code that programs have synchronized to a job.

The head node of the attempt calls it, with the attempt's token.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse, JsonResponse

from jobs.actions.ingest.store_code import store_code
from jobs.api.base.attempt_token import token_of_attempt
from jobs.api.base.errors import problem_of
from jobs.api.base.methods import only
from jobs.api.base.strict import require_known_parameters

_CHUNK_BYTES = 64 * 1024


@only("PUT")
def code_view(request: HttpRequest, attempt_id: int) -> HttpResponse:
    """Answer `PUT /attempts/{id}/code?tree=...`: 200 `{"digest": ...}`, or a problem."""
    try:
        token = token_of_attempt(request)
        require_known_parameters(request.GET, ("tree",))
        code = store_code(attempt_id, token, request.GET.get("tree", ""), _chunks(request))
    except Exception as error:  # noqa: BLE001 - every answer here is a problem document
        return problem_of(error)
    return JsonResponse({"digest": code.digest})


def _chunks(request: HttpRequest) -> Iterator[bytes]:
    while chunk := request.read(_CHUNK_BYTES):
        yield chunk
