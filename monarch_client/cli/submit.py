"""Commands that make a job: submit, from a file; run, from a command line."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import yaml

from monarch_client.cli.exit_codes import BAD_REQUEST
from monarch_client.cli.jobs import COLUMNS
from monarch_client.cli.options import project_option
from monarch_client.cli.output import Output, output_options
from monarch_client.cli.own_values import (
    COMMAND_LINE,
    command_words,
)
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.submission import Submission, given, show_held
from monarch_client.cli.terminal import say, tell
from monarch_client.errors import InvalidSpecErrors
from monarch_client.spec.documents import Document, documents_in
from monarch_client.spec.project_files import (
    PORTAL_YAML,
    PYPROJECT,
    project_defaults,
)

F = TypeVar("F", bound=Callable[..., Any])

_NOT_IN_NAMES = re.compile(r"[^a-z0-9-]+")


def _pairs(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Parse K=V, or K alone for this shell's value of it."""
    pairs = {}
    for text in values:
        key, is_given, value = text.partition("=")
        if not is_given and key not in os.environ:
            raise click.BadParameter(f"{key} has no value here; give {key}=VALUE.")
        pairs[key] = value if is_given else os.environ[key]
    return pairs


job_envs = click.option(
    "--env", "-e", "envs", multiple=True, metavar="K=V", callback=_pairs,
    help="Set a variable; K alone takes this shell's value. Repeatable.",
)  # fmt: skip


def job_options(command: F) -> F:
    """Give a command --project, --name, --env and what they have in common."""
    name = click.option("--name", help="The job's name.")
    hold = click.option("--hold", is_flag=True, help="Do not start it before `mportal release`.")
    dry_run = click.option(
        "--dry-run", "is_dry", is_flag=True,
        help="List uploaded and excluded files, with rules; submit nothing.",
    )  # fmt: skip
    estimate = click.option(
        "--estimate-cost", "is_estimate", is_flag=True,
        help="Show where it would run and what it costs; submit nothing.",
    )  # fmt: skip
    return project_option(name(job_envs(hold(dry_run(estimate(output_options(command)))))))


SPEC_FILE = click.Path(exists=True, dir_okay=False, allow_dash=True)


@click.command()
@click.argument("files", type=SPEC_FILE, nargs=-1)
@click.option("--file", "-f", "named", type=SPEC_FILE, help="The file, as an option.")
@click.option("--follow/--detach", "-F/-d", default=False, help="Follow the job to its end.")
@click.option(
    "--verbose", "-v", "is_verbose", is_flag=True, help="List uploaded files, and submit."
)
@job_options
@pass_session
def submit(session: Session, /, **options: Any) -> None:
    """Submit a job from a YAML file; - is standard input. Its `workdir` is uploaded.

    Several files, or documents of one, are submitted together, all or none: their jobs may depend
    on each other. With --follow the exit code is the job's; Ctrl-C leaves the job running.
    """
    named = options.pop("named")
    sources = (*options.pop("files"), *([named] if named else []))
    is_verbose = options.pop("is_verbose")
    submissions = [
        each
        for source in sources or [_project_file()]
        for each in _submissions(session, source, is_verbose=is_verbose)
    ]
    send(session, submissions, **options)


def _project_file() -> str:
    """Return the file of the current folder that describes its job."""
    if Path(PORTAL_YAML).is_file():
        return PORTAL_YAML
    if project_defaults(Path.cwd()).values:
        return PYPROJECT
    raise click.UsageError(
        f"Which file? Such as: mportal submit job.yaml. Without one the folder needs a "
        f"{PORTAL_YAML}, or a {PYPROJECT} with [tool.mportal]."
    )


def _submissions(session: Session, source: str, *, is_verbose: bool) -> Iterator[Submission]:
    base = Path.cwd() if source == "-" else Path(source).parent
    documents = [Document("")]
    if Path(source).name != PYPROJECT:
        with click.open_file(source, encoding="utf-8", errors="replace") as file:
            documents = documents_in(file.read())
    defaults = project_defaults(base)
    for document in documents:
        yield Submission(session, document, source, base, is_verbose=is_verbose, defaults=defaults)


def send(
    session: Session,
    submissions: Sequence[Submission],
    *,
    is_dry: bool,
    is_estimate: bool,
    is_run: bool = False,
    **options: Any,
) -> None:
    """Submit the specifications together; or list their files, or show their launch plans.

    A dry `is_run` shows the launch plan as well, if there is a portal that makes one.
    """
    if is_dry:
        _show_travels(submissions, options)
        if is_run and not is_estimate and options["output"].is_for_people:
            submissions[0].plan_if_possible(**options)
    if is_estimate:
        options.pop("follow")
        for submission in submissions:
            submission.estimate(**options)
    if is_dry or is_estimate:
        return
    if len(submissions) == 1:
        submissions[0].make(**options)
    else:
        _make_all(session, submissions, **options)


def _show_travels(submissions: Sequence[Submission], options: Mapping[str, Any]) -> None:
    """List the files that would travel, without connecting to a portal."""
    output: Output = options["output"]
    envs = options["envs"]
    found = [travels for submission in submissions for travels in submission.travels(envs)]
    if not output.is_for_people:
        output.rows(found, {}, key="paths")
    else:
        for submission in submissions:
            submission.show_values(options)
        say("\n".join(each.listing for each in found) or "No folder of this machine travels.")
    tell("Nothing was submitted.")


def _make_all(
    session: Session,
    submissions: Sequence[Submission],
    *,
    project: str | None,
    follow: bool,
    output: Output,
    **changes: Any,
) -> None:
    """Submit jobs together and print them."""
    if follow or changes["name"]:
        option = "--follow" if follow else "--name"
        raise click.UsageError(f"{option} is for one job; here are {len(submissions)}.")
    exits = click.get_current_context().exit
    texts: list[str] = []
    slug = project
    for submission in submissions:
        try:
            slug, text = submission.prepared(slug, **changes)
        except InvalidSpecErrors as error:
            submission.complain(error.errors)
            exits(BAD_REQUEST)
        texts.append(text)
    try:
        jobs = session.client.submit_batch(str(slug), texts)
    except InvalidSpecErrors as error:
        for number, submission in enumerate(submissions):
            here = [each for each in error.errors if each.document == number]
            if here:
                submission.complain(here)
        exits(BAD_REQUEST)
    output.rows(jobs, COLUMNS)
    show_held(jobs)


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--nodes", "-N", "num_nodes", type=click.IntRange(1), help="Default: 1.")
@click.option(
    "--mesh", "meshes", multiple=True, metavar="NAME=N", help="Make it a Monarch job. Repeatable."
)
@click.option("--workdir", type=click.Path(), help="A folder to upload.")
@click.option("--setup", help="A command to run on every node first.")
@click.option("--gpus", help="Accelerators of each node, such as A100:8.")
@click.option("--infra", help="Where to run, such as slurm or aws/us-east-1.")
@click.option("--spot", is_flag=True, help="Use spot machines.")
@click.option("--follow/--detach", "-F/-d", default=True, help="Follow it to its end, or detach.")
@job_options
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@pass_session
def run(session: Session, /, command: tuple[str, ...], **options: Any) -> None:
    """Run a command as a job, on every node, and follow it.

    The exit code is the job's; Ctrl-C leaves the job running. With --mesh the command is the
    driver and runs once.
    """
    here = Path.cwd()
    defaults = project_defaults(here)
    words = command_words(command, here)
    name = None if ("name",) in defaults.values else _name_of(command[0])
    spec = {
        "name": name,
        "num_nodes": options.pop("num_nodes"),
        "workdir": options.pop("workdir"),
        "resources": given(
            accelerators=options.pop("gpus"),
            infra=options.pop("infra"),
            use_spot=options.pop("spot"),
        ),
        "setup": options.pop("setup"),
        # One argument is a line for the shell, as with ssh; several are words.
        "run": words[0] if len(words) == 1 else shlex.join(words),
        "portal": given(meshes=meshes_of(options.pop("meshes"))),
    }
    text = yaml.safe_dump(given(**spec), sort_keys=False, allow_unicode=True)
    made = Submission(session, Document(text), COMMAND_LINE, here, defaults=defaults)
    send(session, [made], is_run=True, **options)


def _name_of(command: str) -> str:
    word = Path(command.split(maxsplit=1)[0] if command.split() else "job").name.lower()
    name = _NOT_IN_NAMES.sub("-", word).strip("-")[:40]
    return name if name[:1].isalpha() else f"job-{name}".strip("-")


def meshes_of(texts: tuple[str, ...]) -> dict[str, int]:
    """Parse NAME=N of each mesh."""
    meshes = {}
    for text in texts:
        name, _, count = text.partition("=")
        if not count.isdecimal():
            raise click.BadParameter(f"{text} is not NAME=N, such as trainers=2.")
        meshes[name] = int(count)
    return meshes
