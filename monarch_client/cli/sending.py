"""The submission of files and of command lines: several jobs together, or their plans."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import yaml

from monarch_client.cli.exit_codes import BAD_REQUEST, PORTAL_TROUBLE
from monarch_client.cli.jobs import COLUMNS
from monarch_client.cli.own_values import COMMAND_LINE, command_words
from monarch_client.cli.plans import show_plans
from monarch_client.cli.spec_text import text_from
from monarch_client.cli.submission import Submission, given, show_held
from monarch_client.cli.terminal import say, tell
from monarch_client.errors import InvalidSpecErrors
from monarch_client.spec.documents import Document, documents_in
from monarch_client.spec.project_files import PORTAL_YAML, PYPROJECT, project_defaults

if TYPE_CHECKING:
    from monarch_client.cli.output import Output
    from monarch_client.cli.session import Session

T = TypeVar("T")

_NOT_IN_NAMES = re.compile(r"[^a-z0-9-]+")


def submit_files(session: Session, **options: Any) -> None:
    """Submit the jobs of files, or the job that the current folder describes."""
    named = options.pop("named")
    sources = (*options.pop("files"), *([named] if named else []))
    is_verbose = options.pop("is_verbose")
    submissions = [
        each
        for source in sources or [_project_file()]
        for each in _submissions(session, source, is_verbose=is_verbose)
    ]
    send(session, submissions, **options)


def estimate_file(session: Session, source: str, *, project: str | None, output: Output) -> None:
    """Print the launch plans of the jobs of a file."""
    submissions = list(_submissions(session, source, is_verbose=False))
    unchanged: dict[str, Any] = {"name": None, "envs": {}, "hold": False}
    _estimate(session, submissions, project=project, output=output, **unchanged)


def submit_text(session: Session, text: str, source: str, **options: Any) -> None:
    """Submit the documents of a text that has no defaults of a folder."""
    here = Path.cwd()
    submissions = [Submission(session, each, source, here) for each in documents_in(text)]
    send(session, submissions, **options)


def submit_command(
    session: Session, command: tuple[str, ...], *, meshes: dict[str, int], **options: Any
) -> None:
    """Submit a command line as a job."""
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
        "portal": given(meshes=meshes),
    }
    text = yaml.safe_dump(given(**spec), sort_keys=False, allow_unicode=True)
    made = Submission(session, Document(text), COMMAND_LINE, here, defaults=defaults)
    send(session, [made], is_run=True, **options)


def _name_of(command: str) -> str:
    word = Path(command.split(maxsplit=1)[0] if command.split() else "job").name.lower()
    name = _NOT_IN_NAMES.sub("-", word).strip("-")[:40]
    return name if name[:1].isalpha() else f"job-{name}".strip("-")


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
        documents = documents_in(text_from(source))
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
        _estimate(session, submissions, **options)
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
    if follow:
        raise click.UsageError(f"--follow is for one job; here are {len(submissions)}.")
    prepare = partial(Submission.prepared, **changes)
    jobs = _together(submissions, project, changes, prepare, session.client.submit_batch)
    output.rows(jobs, COLUMNS)
    show_held(jobs)


def _estimate(
    session: Session,
    submissions: Sequence[Submission],
    *,
    project: str | None,
    output: Output,
    **changes: Any,
) -> None:
    """Print the launch plan of a job, or of all jobs that would be submitted together."""
    if len(submissions) == 1:
        submissions[0].estimate(project=project, output=output, **changes)
        return
    prepare = partial(Submission.prepared_for_plan, **changes)
    plans = _together(submissions, project, changes, prepare, session.client.plan_batch)
    output.one(plans, lambda: show_plans(plans), key="total_usd")
    if any(each.problem for each in plans.results):
        click.get_current_context().exit(PORTAL_TROUBLE)


def _together(
    submissions: Sequence[Submission],
    project: str | None,
    changes: Mapping[str, Any],
    prepare: Callable[[Submission, str | None], tuple[str, str]],
    request: Callable[[str, Sequence[str]], T],
) -> T:
    """Return the answer of `request` for all texts; show what is wrong with them, and exit."""
    if changes["name"]:
        raise click.UsageError(f"--name is for one job; here are {len(submissions)}.")
    exits = click.get_current_context().exit
    texts: list[str] = []
    slug = project
    for submission in submissions:
        try:
            slug, text = prepare(submission, slug)
        except InvalidSpecErrors as error:
            submission.complain(error.errors)
            exits(BAD_REQUEST)
        texts.append(text)
    try:
        return request(str(slug), texts)
    except InvalidSpecErrors as error:
        for number, submission in enumerate(submissions):
            here = [each for each in error.errors if each.document == number]
            if here:
                submission.complain(here)
        return exits(BAD_REQUEST)
