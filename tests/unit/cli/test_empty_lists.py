"""Lists without rows: a sentence for people that says what to do, nothing for programs."""

from __future__ import annotations

import json

from tests.each_case import check_each
from tests.unit.rest.fake_portal import page

# A command, the request it makes, and what its sentence names.
LISTS = [
    ("ps", "GET /projects/rl/jobs", "mportal submit"),
    ("ps --sort -cost --pin", "GET /projects/rl/jobs", "mportal submit"),
    (
        "ps -s FAILED",
        "GET /projects/rl/jobs",
        "No such jobs in project rl. All: mportal ps --project rl",
    ),
    ("sessions 42", "GET /projects/rl/jobs/42/gateway-sessions", "mportal ssh"),
    ("token ls", "GET /tokens", "mportal token create"),
    ("view list", "GET /projects/rl/views", "mportal view save"),
    ("schedule list", "GET /projects/rl/schedules", "mportal schedule add"),
    ("template list", "GET /projects/rl/templates", "mportal template save"),
    ("secret list", "GET /projects/rl/secrets", "mportal secret set"),
    ("members list", "GET /projects/rl/members", "mportal members set"),
    ("project ls", "GET /projects", "in no project"),
    ("quota list", "GET /quotas", "mportal admin quota set"),
    ("queue jobs", "GET /queue", "No jobs wait"),
    ("queue list", "GET /queues", "mportal admin queue set"),
    ("queue pools", "GET /pools", "mportal admin pool set"),
    ("clusters", "GET /projects/rl/clusters", "-a"),
    ("events 42", "GET /projects/rl/jobs/42/events", "nothing to list"),
]


def test_an_empty_list_is_a_sentence_for_people_and_nothing_for_programs(mportal, portal):
    def says(command: str, request: str, words: str) -> None:
        portal.on(request, page([]))
        shown = mportal(*command.split())
        assert (shown.exit_code, shown.stdout) == (0, ""), shown.stderr
        assert words in shown.stderr
        for_programs = mportal(*command.split(), "-o", "json")
        assert (json.loads(for_programs.stdout), for_programs.stderr) == ([], "")

    check_each(LISTS, says)
