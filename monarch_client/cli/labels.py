"""Commands that describe jobs: labels and notes."""

from __future__ import annotations

import click

from monarch_client.cli.examples import examples
from monarch_client.cli.job_actions import act
from monarch_client.cli.options import job_argument, job_numbers, project_option
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.terminal import say
from monarch_client.spec.label_keys import changes_in


@click.command(
    epilog=examples(
        "mportal label 42 43 team=rl stage=final",
        "mportal label 42 stage-",
    )
)
@click.argument("words", nargs=-1, required=True, metavar="JOB... NAME=VALUE...")
@project_option
@pass_session
def label(session: Session, words: tuple[str, ...], project: str | None) -> None:
    """Label jobs: NAME=VALUE sets a label, NAME- removes it."""
    labels = [word for word in words if "=" in word or word.endswith("-")]
    names = [word for word in words if word not in labels]
    if not names:
        raise click.UsageError("Name the jobs by numbers or names, before the labels.")
    try:
        changes = changes_in(labels)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if not changes:
        raise click.UsageError("Give labels as NAME=VALUE, or NAME- to remove one.")
    slug, jobs = job_numbers(session, project, names)
    act(session, slug, "label", jobs, labels=changes)


@click.command()
@job_argument
@click.argument("text")
@project_option
@pass_session
def note(session: Session, job_id: int, text: str, project: str | None) -> None:
    """Set the note of a job; "" removes it.

    Its page and the job table show it.
    """
    job = session.client.annotate(session.project(project), job_id, note=text)
    say(f"Job {job.id}: {'noted' if job.note else 'note removed'}")
