"""A portal whose jobs run on nodes without machines, so that this program can be their runners."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import django

from bench import own_portal
from bench.own_portal import OwnPortal

SETTINGS = "bench.portal_settings"
BEGIN_LIMIT_S = 120.0
NODES = 10_000
RANK = 0
SPEC = """\
name: talker
resources: {infra: fake}
run: sleep infinity
"""


@dataclass(frozen=True, slots=True)
class Talker:
    """A running job, as whose runner frames can be posted."""

    job_id: int
    attempt_id: int
    token: str


@dataclass(frozen=True, slots=True)
class LogGround:
    """The portal, and where it is reached."""

    portal: OwnPortal
    host: str
    port: int

    def start(self, count: int) -> list[Talker]:
        """Submit `count` jobs and return what posts for the runners of their attempts."""
        client, project = self.portal.client, self.portal.project
        jobs = [client.submit(project, SPEC).id for _ in range(count)]
        # Only now: it asks settings for the key of the portal that runs.
        from jobs.attempt_tokens import attempt_token  # noqa: PLC0415

        return [Talker(job, self._attempt_of(job), attempt_token(job, 1)) for job in jobs]

    def _attempt_of(self, job: int) -> int:
        deadline = time.monotonic() + BEGIN_LIMIT_S
        while time.monotonic() < deadline:
            if attempts := self.portal.client.attempts(self.portal.project, job):
                return attempts[0].id
            time.sleep(0.1)
        raise TimeoutError(f"job {job} has no attempt")


@contextmanager
def running(core: int | None = None, **environment: str) -> Iterator[LogGround]:
    """Start the portal, on one core if that is named, and forget it at the end.

    Once a process: settings are read for the first one.
    """
    environment = {
        "DJANGO_SETTINGS_MODULE": SETTINGS,
        "BENCH_FAKE_BACKEND": "{home}/fake",
        "MPORTAL_SKYPILOT": "off",
        "MPORTAL_STREAMS": "2000",
        "MPORTAL_STREAMS_PER_USER": "2000",
        **environment,
    }
    with own_portal.running(core, **environment) as portal:
        home = str(portal.home.path)
        os.environ.update(
            MPORTAL_HOME=home,
            DJANGO_SETTINGS_MODULE=SETTINGS,
            BENCH_FAKE_BACKEND=f"{home}/fake",
        )
        django.setup()
        from jobs.backends.fake.backend import FakeBackend  # noqa: PLC0415 - not before the set-up

        FakeBackend(Path(home) / "fake").set_capacity(NODES)
        logging.getLogger("httpx").setLevel(logging.WARNING)
        url = urlsplit(portal.home.url)
        yield LogGround(portal, url.hostname or "127.0.0.1", url.port or 80)
