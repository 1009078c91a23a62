"""The work of mportal attach and dev: the job that is started, and the program that drives it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
import yaml

from monarch_client.cli.exit_codes import BAD_REQUEST, DETACHED, PORTAL_TROUBLE, exit_code_of
from monarch_client.cli.local_program import LocalProgram
from monarch_client.cli.progress import Progress
from monarch_client.cli.spec_text import text_from
from monarch_client.cli.submission import Submission, given
from monarch_client.cli.submit import meshes_of
from monarch_client.cli.terminal import complain, say, tell
from monarch_client.errors import ClientError, ConflictError, InvalidSpecErrors
from monarch_client.gateway.opening import FOLDER_VARIABLE, JOB_VARIABLE, find_job
from monarch_client.runner.base import process_end
from monarch_client.spec.documents import Document, documents_in
from monarch_client.spec.text_edits import set_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from monarch_client.cli.session import Session
    from monarch_client.wire.jobs import Job

_POLL_S = 1.0
_NO_PROGRAM = 127
_HOW_TO = """\
Run a program that is attached to it:  mportal attach {job} -- python program.py
In the program:

    from monarch_client.gateway import connect

    with connect() as meshes:  # or connect({job!r}) without `mportal attach`
        procs = meshes.NAME.spawn_procs(per_host={{"procs": 1}})
"""
_NOTEBOOK = """\
To drive it from a Jupyter notebook, run in a kernel of {prefix}:

    from monarch_client.gateway import connect

    connection = connect("{job}"{folder})
    meshes = connection.meshes
"""


def run_attached(
    session: Session, job: str, project: str | None, folder: Path | None, program: Sequence[str]
) -> int:
    """Run a program that is attached to a job of the user's choice; return its exit code."""
    slug, number = find_job(session.client, job, project or session.config.project)
    return _run(f"{slug}/{number}", folder, program)


def run_with_workers(
    session: Session, project: str | None, program: Sequence[str], **options: Any
) -> int:
    """Submit a job of workers, run a program attached to it, and end it; return the exit code."""
    is_kept, envs, name = (options.pop(key) for key in ("keep", "envs", "name"))
    source = options.pop("source")
    submission = Submission(session, _document(source, **options), *_place_of(source))
    workers = _Workers(session, is_kept=is_kept)
    with process_end.ending(workers.end):
        try:
            workers.start(*submission.prepared(project, name=name, envs=envs, hold=False))
        except InvalidSpecErrors as error:
            submission.complain(error.errors)
            return BAD_REQUEST
        return workers.run(submission.workdir, program)


def _document(source: str | None, *, idle_minutes: int, **options: Any) -> Document:
    """Return the specification of a job without a driver, whose workers wait for programs."""
    if source is not None:
        documents = documents_in(text_from(source))
        if len(documents) > 1:
            raise click.BadParameter(
                f"{source} describes {len(documents)} jobs, and this starts one: keep one of them.",
                param_hint="--file",
            )
        return Document(set_key(documents[0].text, "portal.gateway", value=True))
    meshes = meshes_of(options["meshes"]) or {"workers": 1}
    spec = {
        "name": "dev",
        "num_nodes": sum(meshes.values()),
        "workdir": options["workdir"],
        "resources": given(accelerators=options["gpus"], infra=options["infra"]),
        "setup": options["setup"],
        "portal": {"meshes": meshes, "gateway": True, "idle": {"minutes": idle_minutes}},
    }
    return Document(yaml.safe_dump(given(**spec), sort_keys=False, allow_unicode=True))


def _place_of(source: str | None) -> tuple[str, Path]:
    if source is None:
        return "the command", Path.cwd()
    return source, Path.cwd() if source == "-" else Path(source).parent


class _Workers:
    """A job of workers that this command starts, and ends."""

    def __init__(self, session: Session, *, is_kept: bool) -> None:
        self._client = session.client
        self._is_kept = is_kept
        self._job: Job | None = None

    def start(self, project: str, text: str) -> None:
        """Submit the job. InvalidSpecErrors: what is wrong with it."""
        with process_end.undisturbed():
            self._job = self._client.submit(project, text)
        tell(f"Job {self._job.id} ({self._job.name}): {self._job.url}")

    def run(self, folder: Path | None, program: Sequence[str]) -> int:
        """Wait until the job runs, and run the program; return the exit code."""
        try:
            job = self._ready()
        except KeyboardInterrupt:
            return DETACHED
        if job.is_final:
            return exit_code_of(job) or PORTAL_TROUBLE
        name = f"{job.project}/{job.id}"
        if not program:
            shown = "" if folder is None else f", sync={str(folder)!r}"
            tell(_NOTEBOOK.format(prefix=sys.prefix, job=name, folder=shown))
        return _run(name, folder, program)

    def end(self) -> None:
        """End the job, unless it is kept."""
        job = self._job
        if job is None:
            return
        if self._is_kept:
            tell(f"The workers go on: mportal attach {job.id}, or mportal cancel {job.id}.")
            return
        try:
            self._client.cancel(job.project, job.id)
        except ConflictError:
            return  # it has ended already
        except ClientError as error:
            complain(f"{error.message} Job {job.id} may still run: mportal cancel {job.id}")
        else:
            tell(f"Job {job.id} is ended.")

    def _ready(self) -> Job:
        """Show the job's progress until it runs or has ended."""
        job, progress = cast("Job", self._job), Progress()
        while not (job.is_final or job.status == "RUNNING"):
            attempts = self._client.attempts(job.project, job.id, workers="none")
            progress.show(job, attempts)
            self._client.connection.sleep(_POLL_S)
            job = self._client.job(job.project, job.id)
        if job.is_final:
            progress.ended(job)
        return job


def _run(job: str, folder: Path | None, program: Sequence[str]) -> int:
    """Run the program, or a Python prompt, with what `connect` takes by default.

    That is the job, as PROJECT/NUMBER, and the folder of its code, if there is one.
    """
    if not program and not sys.stdin.isatty():
        say(_HOW_TO.format(job=int(job.rpartition("/")[2])))
        return BAD_REQUEST
    defaults = {JOB_VARIABLE: job}
    if folder is not None:
        defaults[FOLDER_VARIABLE] = str(folder.absolute())
    argv = list(program) or [sys.executable, "-i", "-m", "monarch_client.gateway.prompt"]
    try:
        return LocalProgram(argv, {**os.environ, **defaults}).run()
    except OSError as error:
        complain(f"{argv[0]} cannot be run: {error.strerror}.")
        return _NO_PROGRAM
    except KeyboardInterrupt:
        return DETACHED
