"""Commands that make a job: submit, from a file; run, from a command line."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click
import yaml

from monarch_client.cli.arrays import array_summary
from monarch_client.cli.exit_codes import BAD_REQUEST
from monarch_client.cli.folders import Folders, Sender, Travels
from monarch_client.cli.follow import JobView
from monarch_client.cli.jobs import COLUMNS, project_option
from monarch_client.cli.output import Output, output_options
from monarch_client.cli.plans import show_plan
from monarch_client.cli.session import Session, pass_session
from monarch_client.cli.spec_text import excerpt
from monarch_client.cli.terminal import say, tell
from monarch_client.errors import InvalidSpecErrors, SpecError
from monarch_client.spec import JobSpec
from monarch_client.spec.documents import Document, documents_in
from monarch_client.spec.text_edits import set_key
from monarch_client.wire.jobs import Job

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
    if not sources:
        raise click.UsageError("Which file? Such as: mportal submit job.yaml")
    is_verbose = options.pop("is_verbose")
    submissions = [
        each for source in sources for each in _submissions(session, source, is_verbose=is_verbose)
    ]
    send(session, submissions, **options)


def _submissions(session: Session, source: str, *, is_verbose: bool) -> Iterator[Submission]:
    with click.open_file(source, encoding="utf-8", errors="replace") as file:
        text = file.read()
    base = Path.cwd() if source == "-" else Path(source).parent
    for document in documents_in(text):
        yield Submission(session, document, source, base, is_verbose=is_verbose)


def send(
    session: Session,
    submissions: Sequence[Submission],
    *,
    is_dry: bool,
    is_estimate: bool,
    **options: Any,
) -> None:
    """Submit the specifications together; or list their files, or show their launch plans."""
    if is_dry:
        _show_travels(submissions, options["envs"], options["output"])
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


def _show_travels(submissions: Sequence[Submission], envs: dict[str, str], output: Output) -> None:
    """List the files that would travel, without connecting to a portal."""
    found = [travels for submission in submissions for travels in submission.travels(envs)]
    if output.form != "table" or output.quiet:
        output.rows(found, {}, key="paths")
    else:
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
    spec = {
        "name": _name_of(command[0]),
        "num_nodes": options.pop("num_nodes"),
        "workdir": options.pop("workdir"),
        "resources": given(
            accelerators=options.pop("gpus"),
            infra=options.pop("infra"),
            use_spot=options.pop("spot"),
        ),
        "setup": options.pop("setup"),
        # One argument is a line for the shell, as with ssh; several are words.
        "run": command[0] if len(command) == 1 else shlex.join(command),
        "portal": given(meshes=meshes_of(options.pop("meshes"))),
    }
    text = yaml.safe_dump(given(**spec), sort_keys=False, allow_unicode=True)
    made = Submission(session, Document(text), "the command", Path.cwd())
    send(session, [made], **options)


class Submission:
    """A specification on its way to a portal."""

    def __init__(
        self,
        session: Session,
        document: Document,
        source_name: str,
        base: Path,
        *,
        is_verbose: bool = False,
    ) -> None:
        self._session = session
        self._document = document
        # The text to send, with the changes by options and folders.
        self._sent: str | None = None
        self._source_name = source_name
        self._base = base
        self._is_verbose = is_verbose

    def make(
        self,
        *,
        project: str | None,
        follow: bool,
        output: Output,
        **changes: Any,
    ) -> None:
        """Submit a job and print it; if it is followed, exit with its code.

        `changes` are those of `_changed`.
        """
        try:
            job = self.submit(project, **changes)
        except InvalidSpecErrors as error:
            self.complain(error.errors)
            click.get_current_context().exit(BAD_REQUEST)
        if job.array is not None:
            array = self._session.client.array(job.project, job.array)
            output.one(array, lambda: say(f"{array_summary(array)}\n{array.url}"))
            return
        if not follow:
            output.one(job, lambda: say(f"Job {job.id} ({job.name}): {job.url}"))
            return
        tell(f"Job {job.id} ({job.name}): {job.url}")
        click.get_current_context().exit(JobView(self._session.client, job).follow())

    def estimate(self, *, project: str | None, output: Output, **changes: Any) -> None:
        """Print the launch plan of the job; nothing is submitted."""
        try:
            slug, text = self.prepared(project, **changes)
            plan = self._session.client.plan(slug, text)
        except InvalidSpecErrors as error:
            self.complain(error.errors)
            click.get_current_context().exit(BAD_REQUEST)
        output.one(plan, lambda: show_plan(plan), key="usd_per_hour")

    def submit(self, project: str | None, **changes: Any) -> Job:
        """Upload the folders and submit the job. InvalidSpecErrors: what is wrong with it."""
        slug, text = self.prepared(project, **changes)
        return self._session.client.submit(slug, text)

    def prepared(self, project: str | None, **changes: Any) -> tuple[str, str]:
        """Upload the folders of the job; return its project and its text."""
        spec = self._parsed(changes["envs"])
        text = self._changed(spec, **changes)
        slug = project or spec.portal.project or self._session.project(None)
        sender = Sender(self._session.client, slug, self._base, is_verbose=self._is_verbose)
        self._sent = sender.send_all(text, spec)
        return slug, self._sent

    @property
    def workdir(self) -> Path | None:
        """The folder of this machine that is the job's work directory."""
        source = self._parsed({}).local_sources().get("workdir")
        return Folders(self._base).path_of(source) if source is not None else None

    def travels(self, envs: dict[str, str]) -> list[Travels]:
        """Return the files that would travel; exit if the specification is invalid."""
        try:
            return Folders(self._base).travels(self._parsed(envs))
        except InvalidSpecErrors as error:
            self.complain(error.errors)
            click.get_current_context().exit(BAD_REQUEST)

    def _parsed(self, envs: dict[str, str]) -> JobSpec:
        # The portal decides which keys are for administrators.
        return JobSpec.parse(self._document.text, admin=True, envs=envs)

    def _changed(
        self,
        spec: JobSpec,
        *,
        name: str | None,
        envs: dict[str, str],
        hold: bool,
    ) -> str:
        """Return the text with the changes of the command's options."""
        text = self._document.text
        if name:
            text = set_key(text, "name", name)
        if envs:
            text = set_key(text, "envs", spec.envs)
        return set_key(text, "portal.hold", value=True) if hold else text

    def complain(self, errors: Sequence[SpecError]) -> None:
        """Say what is wrong, by the lines of the whole file."""
        document = self._document
        text = "\n" * document.lines_before + (document.source or document.text)
        for each in errors:
            line = each.line and document.line_of(each.line, self._sent)
            tell(excerpt(text, replace(each, line=line), self._source_name))
        count = len(errors)
        tell(f"{count} error{'s' if count > 1 else ''}; nothing was submitted.")


def given(**values: Any) -> dict[str, Any]:
    """Return the values that are set."""
    return {key: value for key, value in values.items() if value}


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
