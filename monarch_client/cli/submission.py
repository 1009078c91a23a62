"""A specification on its way to a portal: completed, with its folders uploaded, and submitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from monarch_client.cli.arrays import array_summary
from monarch_client.cli.exit_codes import BAD_REQUEST, PORTAL_TROUBLE
from monarch_client.cli.folders import Folders, Sender, Travels
from monarch_client.cli.follow import JobView
from monarch_client.cli.own_values import OwnValues, misplaced, without_folders
from monarch_client.cli.plans import show_plan
from monarch_client.cli.spec_text import excerpt
from monarch_client.cli.terminal import say, tell
from monarch_client.errors import ClientError, InvalidSpecErrors, SpecError
from monarch_client.spec import JobSpec
from monarch_client.spec.project_files import NO_DEFAULTS, ProjectDefaults
from monarch_client.spec.text_edits import set_key

if TYPE_CHECKING:
    from monarch_client.cli.output import Output
    from monarch_client.cli.session import Session
    from monarch_client.spec.documents import Document
    from monarch_client.wire.clusters import Plan
    from monarch_client.wire.jobs import Job


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
        defaults: ProjectDefaults = NO_DEFAULTS,
    ) -> None:
        self._session = session
        self._values = OwnValues(document, source_name, defaults)
        self._document = self._values.document
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
            show_held(array.jobs)
            return
        if not follow:
            output.one(job, lambda: say(f"Job {job.id} ({job.name}): {job.url}"))
            show_held([job])
            return
        tell(f"Job {job.id} ({job.name}): {job.url}")
        show_held([job])
        click.get_current_context().exit(JobView(self._session.client, job).follow())

    def estimate(self, *, project: str | None, output: Output, **changes: Any) -> None:
        """Print the launch plan of the job; nothing is submitted."""
        try:
            plan = self._plan(project, **changes)
        except InvalidSpecErrors as error:
            self.complain(error.errors)
            click.get_current_context().exit(BAD_REQUEST)
        output.one(plan, lambda: show_plan(plan), key="usd_per_hour")
        if plan.problem:
            click.get_current_context().exit(PORTAL_TROUBLE)

    def plan_if_possible(
        self, *, project: str | None, output: Output, follow: bool, **changes: Any
    ) -> None:
        """Print the launch plan; where none can be made, why, and what is wrong with the job."""
        try:
            show_plan(self._plan(project, **changes))
        except InvalidSpecErrors as error:
            self.complain(error.errors)
        except ClientError as error:
            tell(f"No launch plan: {error.message}")

    def _plan(self, project: str | None, **changes: Any) -> Plan:
        """Request the launch plan."""
        return self._session.client.plan(*self.prepared_for_plan(project, **changes))

    def show_values(self, options: Mapping[str, Any]) -> None:
        """Print the values of the job and their files, if its folder has defaults."""
        if not self._values.has_defaults:
            return
        changes = {key: options[key] for key in ("name", "envs", "hold")}
        text = self._changed(self._parsed(changes["envs"]), **changes)
        by_options = {"name": changes["name"], "portal.hold": changes["hold"]}
        own = {*given(**by_options), *(f"envs.{name}" for name in changes["envs"])}
        self._values.show(text, own)

    def submit(self, project: str | None, **changes: Any) -> Job:
        """Upload the folders and submit the job. InvalidSpecErrors: what is wrong with it."""
        slug, text = self.prepared(project, **changes)
        return self._session.client.submit(slug, text)

    def prepared(self, project: str | None, **changes: Any) -> tuple[str, str]:
        """Upload the folders of the job; return its project and its text."""
        spec = self._parsed(changes["envs"])
        text = self._changed(spec, **changes)
        slug = self._slug(project, spec)
        sender = Sender(self._session.client, slug, self._base, is_verbose=self._is_verbose)
        self._sent = sender.send_all(text, spec)
        return slug, self._sent

    def prepared_for_plan(self, project: str | None, **changes: Any) -> tuple[str, str]:
        """Return the project and the text of the job; no folder is uploaded for a plan."""
        spec = self._parsed(changes["envs"])
        self._sent = without_folders(self._changed(spec, **changes), spec)
        return self._slug(project, spec), self._sent

    def _slug(self, project: str | None, spec: JobSpec) -> str:
        return project or spec.portal.project or self._session.project(None)

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
            if (default := self._values.default_at(each.path)) is not None:
                tell(misplaced(each, default))
                continue
            tell(excerpt(text, document.located(each, self._sent), self._source_name))
        count = len(errors)
        tell(f"{count} error{'s' if count > 1 else ''}; nothing was submitted.")


def show_held(jobs: Sequence[Job]) -> None:
    """Print the command that starts those of the jobs that are held."""
    held = [str(job.id) for job in jobs if job.can_release]
    if held:
        who = f"Job {held[0]} is" if len(held) == 1 else f"{len(held)} jobs are"
        tell(f"{who} held until: mportal release {' '.join(held)}")


def given(**values: Any) -> dict[str, Any]:
    """Return the values that are set."""
    return {key: value for key, value in values.items() if value}
