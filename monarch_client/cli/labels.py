"""Commands that describe jobs: labels and notes."""

from __future__ import annotations

import click

from monarch_client.cli.job_actions import act
from monarch_client.cli.jobs import job_argument, project_option
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.terminal import say
from monarch_client.spec.label_keys import changes_in


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="JOB... NAME=VALUE...")
@project_option
@pass_session
def label(session: Session, words: tuple[str, ...], project: str | None) -> None:
    """Label jobs: NAME=VALUE sets a label, NAME- removes it."""
    jobs = [int(word) for word in words if word.isdecimal()]
    if not jobs:
        raise click.UsageError("Name the jobs by their numbers, before the labels.")
    try:
        changes = changes_in(word for word in words if not word.isdecimal())
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if not changes:
        raise click.UsageError("Give labels as NAME=VALUE, or NAME- to remove one.")
    act(session, project, "label", jobs, labels=changes)


@click.command()
@job_argument
@click.argument("text")
@project_option
@pass_session
def note(session: Session, job_id: int, text: str, project: str | None) -> None:
    """Set the note of a job, which its page and the job table show; "" removes it."""
    job = session.client.annotate(session.project(project), job_id, note=text)
    say(f"Job {job.id}: {'noted' if job.note else 'note removed'}")
