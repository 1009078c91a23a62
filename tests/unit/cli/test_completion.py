"""Completion of values: what a shell is offered, and that it never waits or fails."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete

from monarch_client.cli.main import cli
from monarch_client.cli.session import Session
from monarch_client.rest.config import Config
from tests.unit.rest.fake_portal import job_json, page, problem

JOBS = "GET /projects/rl/jobs"


@pytest.fixture
def complete(portal):
    """Return a function that completes the last of some words, as a shell does."""

    def values(*words):
        session = Session(Config("http://portal", "mpt_x", "rl"), portal.options())
        shell = ShellComplete(cli, {"obj": session}, "mportal", "_MPORTAL_COMPLETE")
        found = shell.get_completions(list(words[:-1]), words[-1])
        return [(item.value, item.help) for item in found]

    return values


def test_jobs_are_completed_by_id_with_name_and_status(complete, portal):
    portal.on(JOBS, page([job_json(id=42, name="ppo", status="RUNNING"), job_json(id=7)]))
    assert complete("logs", "4") == [("42", "ppo RUNNING")]


def test_jobs_are_completed_by_name_with_the_newest_of_each(complete, portal):
    portal.on(
        JOBS, page([job_json(id=42, name="ppo", status="RUNNING"), job_json(id=41, name="ppo")])
    )
    assert complete("logs", "p") == [("ppo", "job 42 RUNNING")]
    assert complete("history", "") == [("ppo", "job 42 RUNNING")]


@pytest.mark.parametrize("command", ["attach", "sync", "ssh"])
def test_running_jobs_are_offered_to_commands_that_connect_to_them(complete, portal, command):
    portal.on(JOBS, page([job_json(id=42, name="ppo", status="RUNNING")]))
    assert [value for value, _ in complete(command, "")] == ["42", "ppo"]
    assert portal.seen(JOBS)[0].url.params["status"] == "RUNNING"


def test_a_job_that_is_given_already_is_not_offered_again(complete, portal):
    portal.on(JOBS, page([job_json(id=42), job_json(id=41)]))
    assert [value for value, _ in complete("cancel", "42", "4")] == ["41"]


def test_jobs_of_the_named_project_are_offered(complete, portal):
    portal.on("GET /projects/vision/jobs", page([job_json(id=9)]))
    assert [value for value, _ in complete("get", "--project", "vision", "9")] == ["9"]


def test_a_portal_that_refuses_completes_nothing(complete, portal):
    portal.on(JOBS, problem(403, "forbidden"))
    assert complete("logs", "") == []
