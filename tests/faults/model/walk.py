"""The performance of a script on a portal: every answer is compared with the model."""

from __future__ import annotations

import logging
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from jobs.statuses import JobStatus
from tests.faults.model import model
from tests.faults.model.driver import Driver, LostAnswerError, Reply, ViolationError
from tests.faults.model.known import Known, Row
from tests.faults.model.programs import NODES, PROGRAMS, Program
from tests.faults.model.steps import Step

log = logging.getLogger(__name__)

WRONG = "name: wrong\nnum_nodes: none\nrunn: echo\n"
# Retries wait two seconds, a machine shared by many is slow.
PATIENCE_S = 90


class Walk:
    """One run from an empty portal to an empty portal. Steps on unknown jobs are left out."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.steps: list[Step] = []
        self.jobs: dict[str, Known] = {}
        # Keys are remembered for a day: each walk has its own.
        self._mark = uuid.uuid4().hex[:12]

    def perform(self, step: Step) -> None:
        """Perform one step and check the list afterwards. ViolationError if the portal is wrong."""
        log.debug("%s", step)
        self.steps.append(step)
        getattr(self, f"_{step.do}")(step)
        if not self.driver.is_armed:
            self.look_around()

    def finish(self) -> None:
        """Bring everything to its end; check that all is as it should be and nothing is left."""
        log.debug("to the end")
        self.driver.mend()
        for job in self.jobs.values():
            if not job.is_final:
                job.take_answer("cancel", self.driver.act("cancel", job.id))
        for job in self.jobs.values():
            self._wait_for_end(job)
            self._read_all(job)
        if not self.driver.wait(lambda: not self.driver.remains(), PATIENCE_S):
            raise ViolationError("jobs have left " + "; ".join(self.driver.remains()))
        for job in self.jobs.values():
            if not self.driver.wait(lambda job=job: self._is_deleted(job), PATIENCE_S):
                raise ViolationError(f"{job.name} cannot be deleted")
            self._read_all(job)
        self.look_around()

    def look_around(self) -> None:
        """Check that the list shows every job as it may be, and no other."""
        rows = {row["id"]: row for row in _ok(self.driver.jobs())["results"]}
        for job in self.jobs.values():
            job.take_look(rows.pop(job.id, None))
        if rows:
            raise ViolationError(f"unexpected jobs: {list(rows.values())}")

    # --- steps ------------------------------------------------------------------------------

    def _submit(self, step: Step) -> None:
        program, key = PROGRAMS[step.program], f"{self._mark}-{step.job}"
        text = program.text(step.job)
        if step.other:
            replies = _at_once(*[lambda: self.driver.submit(text, key)] * 2)
        else:
            replies = [self.driver.submit(text, key)]
        ids = {_ok(reply, 201)["id"] for reply in replies}
        if len(ids) != 1:
            raise ViolationError(f"one key made jobs {sorted(ids)}")
        self._adopt(step.job, program, ids.pop(), key)

    def _submit_again(self, step: Step) -> None:
        job = self.jobs.get(step.job)
        if job is None or job.is_deleted or not job.key:
            return  # reruns have none, and a key goes with its job
        reply = self.driver.submit(job.text, job.key)
        job.take_answer("submit", reply)
        if reply.body["id"] != job.id:
            raise ViolationError(f"the key of job {job.id} made job {reply.body['id']}")

    def _submit_other(self, step: Step) -> None:
        job = self.jobs.get(step.job)
        if job is not None and job.key and not job.is_deleted:
            reply = self.driver.submit(job.text + "\n# other\n", job.key)
            _expect(reply, (422, "idempotency_conflict"))

    def _submit_wrong(self, _step: Step) -> None:
        _expect(self.driver.submit(WRONG, f"{self._mark}-wrong"), (422, "invalid_spec"))

    def _request(self, step: Step, verb: str) -> None:
        if job := self.jobs.get(step.job):
            reply = self.driver.act(verb, job.id)
            job.take_answer(verb, reply)
            if reply.body and not reply.code:
                job.take_look(reply.body)

    def _cancel(self, step: Step) -> None:
        self._request(step, "cancel")

    def _hold(self, step: Step) -> None:
        self._request(step, "hold")

    def _release(self, step: Step) -> None:
        self._request(step, "release")

    def _delete(self, step: Step) -> None:
        self._request(step, "delete")

    def _rerun(self, step: Step) -> None:
        if job := self.jobs.get(step.job):
            try:
                reply = self.driver.act("rerun", job.id)
            except LostAnswerError:
                self._find_rerun(step, job)
                return
            job.take_answer("rerun", reply)
            self._adopt_rerun(step, job, reply)

    def _both(self, step: Step) -> None:
        """Send two requests at the same time."""
        job = self.jobs.get(step.job)
        if job is None:
            return
        verbs = tuple(step.other.split("+"))
        if "rerun" in verbs:
            # It must not be repeated blindly, so that its answer must not be lost.
            self.driver.mend()
        replies = _at_once(*[lambda verb=verb: self.driver.act(verb, job.id) for verb in verbs])
        job.take_answers(verbs, replies)
        for verb, reply in zip(verbs, replies, strict=True):
            if verb == "rerun":
                self._adopt_rerun(step, job, reply)

    def _read(self, step: Step) -> None:
        if job := self.jobs.get(step.job):
            self._read_all(job)

    def _await_end(self, step: Step) -> None:
        job = self.jobs.get(step.job)
        if job and model.will_end(job.worlds, job.program) and self._has_room():
            self._wait_for_end(job)

    def _await_running(self, step: Step) -> None:
        job = self.jobs.get(step.job)
        if job is None or not model.will_run_on(job.worlds, job.program) or not self._has_room():
            return
        self.driver.mend()
        if not self.driver.wait(lambda: self._status(job) == JobStatus.RUNNING, PATIENCE_S):
            raise ViolationError(f"{job.name} does not run after {PATIENCE_S} s: {job.worlds}")

    def _kill(self, step: Step) -> None:
        self.driver.harm("kill", step.part, step.moment)

    def _freeze(self, step: Step) -> None:
        self.driver.harm("freeze", step.part, step.moment)

    def _mend(self, _step: Step) -> None:
        self.driver.mend()

    # --- what steps are made of -------------------------------------------------------------

    def _adopt(self, name: str, program: Program, job_id: int, key: str = "") -> None:
        self.jobs[name] = Known(name, program, job_id, key, model.submitted(program))

    def _adopt_rerun(self, step: Step, job: Known, reply: Reply) -> None:
        if reply.status == 201:
            if reply.body["rerun_of"] not in {job.id, None}:
                raise ViolationError(
                    f"the rerun of job {job.id} is one of {reply.body['rerun_of']}"
                )
            self._adopt(step.again, replace(job.program, held=False), reply.body["id"])

    def _find_rerun(self, step: Step, job: Known) -> None:
        """Find what became of a rerun whose answer was lost.

        If nothing, it is repeated; else its job is adopted.
        """
        ours = {known.id for known in self.jobs.values()}
        rows = _ok(self.driver.jobs())["results"]
        made = [row for row in rows if row["rerun_of"] == job.id and row["id"] not in ours]
        if not made:
            self._rerun(step)
        else:
            self._adopt(step.again, replace(job.program, held=False), made[0]["id"])

    def _wait_for_end(self, job: Known) -> None:
        self.driver.mend()
        if not self.driver.wait(lambda: self._status(job) is None or job.is_final, PATIENCE_S):
            raise ViolationError(f"{job.name} has not ended after {PATIENCE_S} s: {job.worlds}")

    def _status(self, job: Known) -> JobStatus | None:
        """Read the job's status; None once it is deleted."""
        job.take_look(_found(self.driver.read(job.id)))
        world = next(iter(job.worlds))
        return None if world.deleted else world.status

    def _is_deleted(self, job: Known) -> bool:
        job.take_answer("delete", self.driver.act("delete", job.id))
        return job.is_deleted

    def _read_all(self, job: Known) -> None:
        """Read the job, its events, its attempts and its lines; all must agree with each other."""
        found = [self.driver.read(job.id, what) for what in ("", "events", "attempts", "logs")]
        if job.is_deleted:
            for reply in found:
                _expect(reply, model.NOT_FOUND)
            return
        job.take_look(_found(found[0]))
        job.take_history(_ok(found[1])["results"])
        job.take_attempts(_ok(found[2])["results"])
        lines = [row for row in _ok(found[3])["results"] if row["stream"] == "stdout"]
        job.check_lines(lines, was_final=found[0].body["is_final"])

    def _has_room(self) -> bool:
        """Whether every job that is to start surely finds free capacity, whatever else happens."""
        jobs = [job for job in self.jobs.values() if not job.is_final]
        kept = sum(j.program.nodes for j in jobs if model.will_stay(j.worlds, j.program))
        widest = max((job.program.nodes for job in jobs if job.program.ending), default=0)
        return kept + widest <= NODES


def _at_once(*requests: Any) -> list[Reply]:
    with ThreadPoolExecutor(len(requests)) as pool:
        return [future.result() for future in [pool.submit(request) for request in requests]]


def _ok(reply: Reply, status: int = 200) -> Any:
    _expect(reply, (status, ""))
    return reply.body


def _expect(reply: Reply, answer: model.Answer) -> None:
    if reply.answer != answer:
        raise ViolationError(f"answered {reply.answer} instead of {answer}: {reply.body}")


def _found(reply: Reply) -> Row | None:
    return None if reply.answer == model.NOT_FOUND else _ok(reply)
