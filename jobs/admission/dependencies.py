"""Resolve `portal.depends_on`: to jobs that are submitted together, else to the project's."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jobs.models import Job, JobArray, Project
from jobs.models.job_dependency import After
from jobs.policies.dependency_order import circle_in
from jobs.statuses import JobStatus
from monarch_client.spec import JobSpec, SpecCode
from monarch_client.spec.array_keys import count_of
from monarch_client.spec.dependency_keys import Needed

# For one submit: every job of an array waits for every job that is named.
MOST_ROWS = 10_000
PATH = "portal.depends_on"

Problem = tuple[str, SpecCode, str]


@dataclass(frozen=True, slots=True)
class Needs:
    """The dependencies of one specification.

    `jobs` are existing jobs by number, `siblings` specifications by their index in the submit.
    """

    jobs: dict[int, After]
    siblings: dict[int, After]


def find_dependencies(
    project: Project, specs: Sequence[JobSpec | None], parents: Collection[int] = ()
) -> tuple[list[Needs], list[list[Problem]]]:
    """Return the dependencies and the problems of each of `specs`; skip None, which has errors.

    `parents` are the jobs whose end also ends jobs that are not detached.
    """
    finder = _Finder(project, specs, parents)
    return finder.needs, finder.problems


def without_deleted(project: Project, content: dict[str, Any]) -> dict[str, Any]:
    """Return a checked specification without the dependencies on jobs that `project` lacks."""
    spec = JobSpec.from_dict(content)
    needed = spec.portal.depends_on
    kept = tuple(each for each in needed if any(_jobs_of(project, each.job)))
    if kept == needed:
        return content
    return replace(spec, portal=replace(spec.portal, depends_on=kept)).to_dict()


class _Finder:
    """A lookup of names: specifications of the same submit come before jobs of the project."""

    def __init__(
        self, project: Project, specs: Sequence[JobSpec | None], parents: Collection[int]
    ) -> None:
        self._project, self._parents = project, parents
        self._specs = specs
        self.needs = [Needs({}, {}) for _ in specs]
        self.problems: list[list[Problem]] = [[] for _ in specs]
        for place, spec in enumerate(specs):
            for number, needed in enumerate(spec.portal.depends_on if spec else ()):
                self._find(place, number, needed)
        self._refuse_circles()
        self._refuse_too_many()

    def _find(self, place: int, number: int, needed: Needed) -> None:
        spec, path = self._specs[place], f"{PATH}[{number}]"
        assert spec is not None  # noqa: S101 - only present specs have dependencies
        after = After(needed.after)
        if spec.portal.if_dependency_fails == "run":
            after = After.END
        beside = [
            i for i, each in enumerate(self._specs) if each and each.name == needed.job
        ]  # fmt: skip
        beside = [i for i in beside if i != place]
        if len(beside) > 1:
            message = f"{path}: {len(beside)} of the jobs submitted together are {needed.job}."
            self.problems[place].append((path, SpecCode.CONFLICT, message))
        elif beside:
            self.needs[place].siblings[beside[0]] = after
        else:
            self._find_in_project(place, path, needed, after)

    def _find_in_project(self, place: int, path: str, needed: Needed, after: After) -> None:
        jobs = list(_jobs_of(self._project, needed.job))
        if not jobs:
            what = f"job {needed.job}" if isinstance(needed.job, int) else f"job {needed.job!r}"
            message = f"{path}: Project {self._project.slug} has no {what}."
            self.problems[place].append((path, SpecCode.UNKNOWN_JOB, message))
        for job in jobs:
            self.needs[place].jobs[job.pk] = after
        self._refuse_parent(place, path, jobs)
        spec = self._specs[place]
        fails = spec is not None and spec.portal.if_dependency_fails == "fail"
        if after == After.SUCCESS and fails and (bad := _not_succeeded(jobs)):
            message = (
                f"{path}: Job {bad.pk} ({bad.name}) ended as {bad.status}, so this would never "
                "start. Rerun that first, or write `after: end`."
            )
            self.problems[place].append((path, SpecCode.DEPENDENCY_FAILED, message))

    def _refuse_parent(self, place: int, path: str, jobs: Sequence[Job]) -> None:
        """Refuse a child that waits for its parent: the child ends with it."""
        spec = self._specs[place]
        parent = next((job for job in jobs if job.pk in self._parents), None)
        if parent is not None and spec is not None and not spec.portal.detached:
            message = (
                f"{path}: A child of job {parent.pk} ({parent.name}) ends with it, so it would "
                "never start after it. Write `portal.detached: true` to have it outlive that job, "
                "or leave it out here."
            )
            self.problems[place].append((path, SpecCode.DEPENDENCY_CYCLE, message))

    def _refuse_circles(self) -> None:
        needs = {place: frozenset(each.siblings) for place, each in enumerate(self.needs)}
        # Each cycle once: without one of its jobs, the rest may have another.
        while circle := circle_in(needs):
            specs = [self._specs[place] for place in (*circle, circle[0])]
            chain = " needs ".join(spec.name for spec in specs if spec)
            message = f"{PATH} is a cycle: {chain}."
            self.problems[circle[0]].append((PATH, SpecCode.DEPENDENCY_CYCLE, message))
            needs[circle[0]] = frozenset()

    def _refuse_too_many(self) -> None:
        sizes = [count_of(spec.portal.array) if spec else 1 for spec in self._specs]
        rows = 0
        for place, each in enumerate(self.needs):
            waits_for = len(each.jobs) + sum(sizes[i] for i in each.siblings)
            rows += sizes[place] * waits_for
            if rows > MOST_ROWS:
                message = (
                    f"{PATH}: {sizes[place]:,} jobs would wait for {waits_for:,} each; at most "
                    f"{MOST_ROWS:,} such pairs are taken at once."
                )
                self.problems[place].append((PATH, SpecCode.TOO_LARGE, message))
                return


def _jobs_of(project: Project, wanted: str | int) -> Iterator[Job]:
    if isinstance(wanted, int):
        yield from Job.objects.filter(project=project, pk=wanted)
        return
    job = Job.objects.filter(project=project, name=wanted).order_by("-pk").first()
    array = JobArray.objects.filter(project=project, name=wanted).order_by("-pk").first()
    # If a job and an array have the same name, the later one counts.
    if array is not None and (job is None or job.created_at < array.created_at):
        yield from array.jobs.newest_of_arrays().order_by("pk")
    elif job is not None:
        yield job


def _not_succeeded(jobs: Sequence[Job]) -> Job | None:
    ended = (job for job in jobs if job.is_final and job.status != JobStatus.SUCCEEDED)
    return next(ended, None)
