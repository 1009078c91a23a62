"""The argument JOB: a number, or the name of the newest such job, in every command alike."""

from __future__ import annotations

import shlex

import click
import pytest

from monarch_client.cli.main import cli
from monarch_client.cli.verb_group import VerbGroup
from tests.each_case import check_each
from tests.unit.cli.test_wrong_values import commands
from tests.unit.rest.fake_portal import job_json, ok, page

JOBS = "GET /projects/rl/jobs"
# These connect to running jobs only, and read names by themselves.
OF_RUNNING_JOBS = {("attach",), ("sync",), ("ssh",)}


def takes_jobs(command: click.Command) -> bool:
    return any((p.metavar or "").startswith("JOB") for p in command.params)


def test_every_command_that_takes_jobs_takes_a_name_for_the_newest(mportal, portal):
    portal.on(JOBS, page([]))
    taking = [
        (path, c) for path, c in commands(cli) if takes_jobs(c) and path not in OF_RUNNING_JOBS
    ]
    assert len(taking) > 20

    def check(path, command):
        options = ["--parent"] if path == ("ps",) else []
        others = {"priority": ["70"], "words": ["a=b"], "text": ["x"], "duration": ["1h"]}
        more = [w for p in command.params for w in others.get(p.name, [])]
        names = ["ppo", "dqn"] if path == ("compare",) else ["ppo"]
        done = mportal(*path, *options, *names, *more)
        assert (done.exit_code, "no job named 'ppo'" in done.stderr) == (2, True), done.stderr
        assert "Usage:" not in done.stderr

    check_each(taking, check)


def test_the_newest_job_of_a_name_is_taken(mportal, portal):
    portal.on(JOBS, page([job_json(id=42, name="ppo")]))
    portal.on("GET /projects/rl/jobs/42", ok(job_json(id=42, name="ppo")))
    portal.on("GET /projects/rl/jobs/42/attempts", page([]))
    assert "42 (ppo)" in mportal("get", "ppo").stdout
    assert dict(portal.seen(JOBS)[0].url.params) == {"name": "ppo", "limit": "1"}


def test_a_job_of_another_project_is_named_with_it(mportal, portal):
    portal.on("GET /projects/vision/jobs/7", ok(job_json(id=7, project="vision")))
    portal.on("GET /projects/vision/jobs/7/attempts", page([]))
    assert mportal("get", "vision/7").exit_code == 0


def test_a_number_needs_no_search(mportal, portal):
    portal.on("GET /projects/rl/jobs/42", ok(job_json()))
    portal.on("GET /projects/rl/jobs/42/attempts", page([]))
    mportal("get", "42")
    assert portal.seen(JOBS) == []


@pytest.mark.parametrize("words", [("cancel", "rl/1", "vision/2"), ("wait", "vision/x", "rl/x")])
def test_jobs_of_two_projects_in_one_command_are_refused(mportal, portal, words):
    portal.on(JOBS, page([job_json()]))
    portal.on("GET /projects/vision/jobs", page([job_json()]))
    done = mportal(*words)
    assert (done.exit_code, "Name jobs of one project." in done.stderr) == (2, True)


def test_every_option_has_a_help_text():
    def check(_path, command):
        bare = [p.opts[-1] for p in command.params if isinstance(p, click.Option) and not p.help]
        assert bare == []

    check_each(commands(cli), check)


def test_a_list_and_a_deletion_are_found_by_the_usual_words():
    context = click.Context(cli)
    same = [("ls", "list"), ("rm", "delete"), ("rm", "remove")]
    found = {
        (group.name, *names)
        for group in (cli.get_command(context, name) for name in cli.list_commands(context))
        if isinstance(group, VerbGroup)
        for names in same
        if group.get_command(context, names[0])
        and group.get_command(context, names[0]) is group.get_command(context, names[1])
    }
    assert {group for group, *_ in found} == {
        *("members", "project", "queue", "quota", "schedule", "secret", "template", "token", "view")
    }


def test_a_rerun_is_followed_by_the_option_of_submit_and_by_its_own():
    rerun = cli.get_command(click.Context(cli), "rerun")
    follow = next(p for p in rerun.params if p.name == "follow")
    assert {"-F", "-f", "--follow"} <= set(follow.opts)


def test_the_examples_of_help_are_commands_with_these_options():
    lines = [
        (command, line.strip())
        for _, command in commands(cli)
        for line in (command.epilog or "").splitlines()
        if line.startswith("  ")
    ]
    assert len(lines) > 40

    def check(command, line):
        words = shlex.split(line.partition(" | ")[0].partition(" && ")[0])[1:]
        group = cli
        while isinstance(group, click.Group):
            name, words = words[0], words[1:]
            group = group.get_command(click.Context(group), name)
        assert group is command
        command.make_parser(click.Context(command)).parse_args(words)

    check_each(lines, check)
