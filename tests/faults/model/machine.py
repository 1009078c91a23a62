"""The rules by which hypothesis makes up scripts. What a step does and checks is in `walk`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, precondition, rule

from tests.faults.model.driver import Driver
from tests.faults.model.parts import BREAKABLE
from tests.faults.model.programs import PROGRAMS
from tests.faults.model.steps import RESULTS, Step, save
from tests.faults.model.walk import Walk

MOMENTS = ("now", "next")
PAIRS = (
    "cancel+cancel",
    "cancel+delete",
    "cancel+hold",
    "cancel+release",
    "delete+delete",
    "hold+hold",
    "hold+release",
)
_END = Step("to the end")
SUBMISSIONS = ("submit_again", "submit_other", "submit_wrong")


class LifeCycle(RuleBasedStateMachine):
    """Jobs of one portal while it is used and broken. A failure leaves its script behind.

    What is drawn depends on the steps alone, never on answers: a script must mean the same again.
    """

    driver: ClassVar[Driver]
    # What a script has shown once: a race need not be lost twice for hypothesis to shrink it.
    shown: ClassVar[dict[tuple[Step, ...], Exception]]
    script: ClassVar[str] = "life-cycle"
    results: ClassVar[Path] = RESULTS

    jobs = Bundle("jobs")

    def __init__(self) -> None:
        super().__init__()
        self.walk = Walk(self.driver)
        self._names = 0
        self._is_harmed = False
        self._has_failed = False

    def __init_subclass__(cls) -> None:
        cls.shown = {}

    def teardown(self) -> None:
        if not self._has_failed:
            with self._kept(_END):
                self.walk.finish()

    @initialize(target=jobs, program=st.sampled_from(tuple(PROGRAMS)))
    def submit_first(self, program: str) -> str:
        return self._submit(program)

    @rule(target=jobs, program=st.sampled_from(tuple(PROGRAMS)), twice=st.booleans())
    def submit(self, program: str, twice: bool) -> str:
        return self._submit(program, "twice" if twice else "")

    @rule(job=jobs, do=st.sampled_from(SUBMISSIONS))
    def submit_something_else(self, job: str, do: str) -> None:
        self._perform(do, job=job)

    @rule(job=jobs)
    def cancel(self, job: str) -> None:
        self._perform("cancel", job=job)

    @rule(job=jobs)
    def delete(self, job: str) -> None:
        self._perform("delete", job=job)

    @rule(job=jobs, do=st.sampled_from(("hold", "release")))
    def hold(self, job: str, do: str) -> None:
        self._perform(do, job=job)

    @rule(target=jobs, job=jobs)
    def rerun(self, job: str) -> str:
        name = self._next_job()
        self._perform("rerun", job=job, again=name)
        return name

    @rule(job=jobs, verbs=st.sampled_from(PAIRS))
    def both(self, job: str, verbs: str) -> None:
        self._perform("both", job=job, other=verbs)

    @rule(target=jobs, job=jobs, verb=st.sampled_from(("cancel", "delete")))
    def rerun_meanwhile(self, job: str, verb: str) -> str:
        name = self._next_job()
        self._perform("both", job=job, other=f"{verb}+rerun", again=name)
        return name

    @rule(job=jobs)
    def read(self, job: str) -> None:
        self._perform("read", job=job)

    @rule(job=jobs, do=st.sampled_from(("await_end", "await_running")))
    def wait(self, job: str, do: str) -> None:
        self._perform(do, job=job)

    @rule(part=st.sampled_from(BREAKABLE), moment=st.sampled_from(MOMENTS))
    def kill(self, part: str, moment: str) -> None:
        self._is_harmed = True
        self._perform("kill", part=part, moment=moment)

    @rule(part=st.sampled_from(BREAKABLE), moment=st.sampled_from(MOMENTS))
    def freeze(self, part: str, moment: str) -> None:
        self._is_harmed = True
        self._perform("freeze", part=part, moment=moment)

    @precondition(lambda self: self._is_harmed)
    @rule()
    def mend(self) -> None:
        self._is_harmed = False
        self._perform("mend")

    def _submit(self, program: str, other: str = "") -> str:
        name = self._next_job()
        self._perform("submit", job=name, program=program, other=other)
        return name

    def _next_job(self) -> str:
        self._names += 1
        return f"j{self._names}"

    def _perform(self, do: str, **fields: str) -> None:
        step = Step(do, **fields)
        with self._kept(step):
            self.walk.perform(step)

    @contextmanager
    def _kept(self, step: Step) -> Iterator[None]:
        """Leave the script of a failure behind: at last the smallest, which is tried last."""
        script = (*self.walk.steps, step)
        try:
            if script in self.shown:
                raise self.shown[script]
            yield
        except Exception as error:
            self._has_failed = True
            steps = [each for each in script if each != _END]
            path = save(self.script, steps, str(error), self.results)
            if script not in self.shown:
                error.add_note(f"Replay it: python -m tests.faults.model.replay {path}")
                error.add_note(self.driver.report())
                self.shown[script] = error
            raise
