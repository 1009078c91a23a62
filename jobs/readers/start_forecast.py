"""The forecast of a job that is not submitted: what the scheduler would do with it now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jobs.admission.checked_spec import Checked
from jobs.admission.dependency_messages import row_of, wait_for_dependencies
from jobs.models import Job, Project
from jobs.permissions import Actor
from jobs.queueing.current_pass import Plan, planned_with
from jobs.queueing.new_jobs import NewJobs
from jobs.readers.planned_job import PlannedJob, forecast_of
from jobs.scheduling.snapshot import StaysQueued
from jobs.statuses import WaitReason
from monarch_client.spec.array_keys import count_of
from monarch_client.wire.queue import Forecast


class StartForecasts:
    """The forecasts of the specifications of one submit, `together`.

    What needs one of them waits for it; the others are planned as if each were submitted alone.
    Those with equal requests, such as a sweep of one command, share one scheduling pass.
    """

    def __init__(self, actor: Actor, project: Project, together: Sequence[Checked]) -> None:
        self._actor, self._project, self._together = actor, project, together
        # A list: a request has no hash.
        self._planned: list[tuple[NewJobs, int, Forecast]] = []

    def of(self, checked: Checked) -> Forecast:
        """Plan the queue with the job of `checked` in it; of an array, report its first job."""
        if checked.spec.portal.hold:
            said = "It is held until `mportal release`, or its button, releases it."
            return forecast_of("held", WaitReason.HELD, said)
        if siblings := [self._together[place].spec.name for place in checked.needs.siblings]:
            said = f"It waits for {', '.join(siblings)}, submitted together with it."
            return forecast_of("dependency", WaitReason.DEPENDENCY, said)
        if waits := _dependencies(checked):
            return forecast_of("dependency", waits["wait_reason"], waits["message"])
        block = checked.spec.portal
        size = count_of(block.array)
        count = min(size, block.max_parallel or size)
        new = NewJobs(checked.request, self._project.pk, self._actor.user.pk, block.priority, count)
        for known, known_size, forecast in self._planned:
            if (known, known_size) == (new, size):
                return forecast
        forecast = self._plan(new, size)
        self._planned.append((new, size, forecast))
        return forecast

    def _plan(self, new: NewJobs, size: int) -> Forecast:
        plan = planned_with(new)
        found = PlannedJob(self._actor, new.numbers[0], plan).forecast()
        return _of_array(found, plan, new, size) if size > 1 else found


def _dependencies(checked: Checked) -> dict[str, str]:
    """Return the wait for the jobs that it needs; empty if it waits for none."""
    needs = checked.needs.jobs
    jobs = Job.objects.in_bulk(list(needs)) if needs else {}
    rows = [row_of(None, jobs[pk], after) for pk, after in needs.items() if pk in jobs]
    return wait_for_dependencies(rows)


def _of_array(found: Forecast, plan: Plan, new: NewJobs, size: int) -> Forecast:
    """Return the forecast of the first of `size` jobs with how many of them start at once."""
    starting = sum(
        each.job_id in new.numbers and not isinstance(each, StaysQueued) for each in plan[1]
    )
    if found.code != "next":
        return replace(found, sentence=f"The first of its {size} jobs: {found.sentence}")
    some = "All" if starting == size else f"{starting} of"
    verb = "starts" if starting == 1 else "start"
    said = f"{some} its {size} jobs {verb} with the next scheduling pass, within a second or two."
    return replace(found, sentence=said)
