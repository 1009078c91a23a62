"""A backend that cannot be queried proves nothing: jobs wait for it, report that, and go on."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.actions.jobs.cancel import cancel_job
from jobs.backends.fake.backend import FakeBackend
from jobs.errors import BackendUnavailableError
from jobs.permissions import Actor
from jobs.reconcilers import queue, running
from jobs.reconcilers.blocked import AWAY
from jobs.statuses import JobStatus
from tests.integration.reconcilers.steps import push, status_of

pytestmark = pytest.mark.django_db

VERBS = ("observe", "launch", "stop", "tear_down")


@pytest.fixture
def away(fake, monkeypatch):
    """Let the backend be away, and be there again."""

    def refuse(*_: object, **__: object) -> None:
        raise BackendUnavailableError("Its API server does not answer.")

    class Switch:
        def on(self) -> None:
            for verb in VERBS:
                monkeypatch.setattr(FakeBackend, verb, refuse)

        def off(self) -> None:
            monkeypatch.undo()

    return Switch()


def reported(job) -> list[str]:
    return list(job.events.filter(verb=AWAY).values_list("message", flat=True))


def test_a_launch_waits_for_its_backend_and_says_so_once(away, tick, submitted):
    queue.run_pass()
    away.on()
    tick()
    tick()
    assert status_of(submitted) == JobStatus.PROVISIONING
    assert reported(submitted) == ["Waits for its backend. Its API server does not answer."]
    away.off()
    tick()
    assert status_of(submitted) == JobStatus.SETTING_UP
    assert submitted.attempts.count() == 1


def test_a_launch_waits_for_a_backend_that_was_switched_off(fake, tick, submitted, settings):
    queue.run_pass()
    directory, settings.MPORTAL_FAKE_BACKEND = settings.MPORTAL_FAKE_BACKEND, ""
    tick()
    assert status_of(submitted) == JobStatus.PROVISIONING
    assert "not enabled here" in reported(submitted)[0]
    settings.MPORTAL_FAKE_BACKEND = directory
    tick()
    assert status_of(submitted) == JobStatus.SETTING_UP


def test_a_cancelled_job_keeps_stopping_until_its_backend_can_be_queried(
    away, tick, fake, submitted
):
    tick()
    push(fake, submitted)
    cancel_job(Actor(submitted.submitted_by), submitted)
    away.on()
    tick()
    assert status_of(submitted) == JobStatus.STOPPING
    assert len(reported(submitted)) == 1
    away.off()
    tick()
    tick()
    assert status_of(submitted) == JobStatus.CANCELLED


def test_a_silent_runner_is_not_given_up_while_its_backend_is_unreachable(
    away, tick, fake, submitted, time_machine
):
    tick()
    push(fake, submitted)
    tick()
    away.on()
    time_machine.move_to(timezone.now() + timedelta(seconds=60))
    tick()
    assert status_of(submitted) == JobStatus.RUNNING
    assert len(reported(submitted)) == 1


def test_the_last_words_of_a_dead_runner_are_waited_for_and_nothing_is_decided_without_them(
    tick, fake, submitted, time_machine, monkeypatch
):
    tick()
    push(fake, submitted)
    tick()
    fake.finish(submitted.attempts.get().cluster.name)
    time_machine.move_to(timezone.now() + timedelta(seconds=60))

    def away(*_: object, **__: object) -> None:
        raise BackendUnavailableError("Its API server does not answer.")

    with monkeypatch.context() as patch:
        patch.setattr(FakeBackend, "leftovers", away)
        running.step(submitted.pk)
    assert status_of(submitted) == JobStatus.RUNNING
    assert reported(submitted) == ["Waits for its backend. Its API server does not answer."]
    tick()
    tick()
    assert JobStatus(status_of(submitted)).is_final
