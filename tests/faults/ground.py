"""The portal on which cells are played: it is broken again and again, and queried."""

from __future__ import annotations

import logging
import re
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psycopg
from psycopg import sql

from tests.faults import victims
from tests.faults.cells import Cell
from tests.faults.held_points import HeldPoints
from tests.faults.remains import remains_of
from tests.faults.witness import Witness
from tests.portal_process import PortalProcess
from tests.waiting import eventually

JOBS = "/api/v1/projects/default/jobs"
RANKS = (0, 1)
PATIENCE_S = 50.0
GONE_IN_S = 30.0
# After so many deaths of one part the supervisor takes its time before it starts it again.
MOST_DEATHS = 4
_NUMBERED = re.compile(r"line (\d+)")


class Ground:
    """One portal with its held points and a witness; a file of tests shares it."""

    patience_s = PATIENCE_S
    gone_in_s = GONE_IN_S

    def __init__(self, **environment: str) -> None:
        self.portal = PortalProcess(**environment)
        self.points = self._points_below(self.portal.root / "points")
        self.portal.environment["MPORTAL_CRASH_POINTS"] = str(self.points.directory)
        self.witness = Witness()
        self._deaths: Counter[str] = Counter()
        self._helpers = ThreadPoolExecutor(4)
        logging.getLogger("httpx").setLevel(logging.WARNING)  # it would bury a report
        self.portal.start()

    def close(self) -> None:
        """End all of it."""
        self.points.let_go()
        self.portal.close()
        self.witness.close()
        self._helpers.shutdown()

    def make_ready(self) -> None:
        """Wait until every part runs again; restart the portal if one has died too often."""
        self.points.let_go()
        if max(self._deaths.values(), default=0) >= MOST_DEATHS:
            self.portal.stop()
            self.portal.start()
            self._deaths.clear()
        assert eventually(self._is_whole, timeout_s=40), self.portal.logs()
        self.portal.wait_until_ready()

    def submit(self, spec: dict[str, Any]) -> Future[int]:
        """Submit a job; the future holds its number.

        The request is repeated for as long as the portal breaks.
        """
        headers = {"Idempotency-Key": str(uuid.uuid4())}

        def ask() -> int | None:
            answer = self._ask("POST", "", json={"spec": spec}, headers=headers)
            assert answer.status_code == 201 or answer.status_code >= 500, answer.text
            return answer.json()["id"] if answer.status_code == 201 else None

        return self._helpers.submit(self._until_answered, ask)

    def cancel(self, job: int) -> Future[bool]:
        """Cancel a job; the request is repeated for as long as the portal breaks."""

        def ask() -> bool | None:
            answer = self._ask("POST", f"/{job}/actions/cancel")
            # 409: the first word was heard, and its answer lost.
            assert answer.status_code in (202, 409) or answer.status_code >= 500, answer.text
            return answer.status_code < 500 or None

        return self._helpers.submit(self._until_answered, ask)

    def pids_of(self, cell: Cell, job: int | None) -> list[int]:
        """Find the victim's processes."""
        kind = cell.victim.rstrip("01")
        if cell.victim in victims.PORTAL_PARTS:
            return victims.part_of(self.portal, cell.victim)
        assert job is not None
        if kind == "driver":
            return [self.witness.wait_for(job, len(RANKS))[0].pid]
        finders = {
            "runner": victims.runner_on,
            "guardian": victims.guardian_on,
            "host": victims.host,
        }
        return finders[kind](self.node(job, cell.rank))

    def node(self, job: int, rank: int) -> Any:
        """Return the directory of a node of the job's newest attempt."""
        folders = (self.portal.home.path / "local").glob(f"mp*-{job}-*")
        newest = max(folders, key=lambda folder: int(folder.name.rpartition("-")[2]))
        return newest / f"rank-{rank}"

    def remains(self, job: int) -> list[str]:
        """Describe everything that is left of a job."""
        return remains_of(self.portal, job)

    def note_death(self, victim: str) -> None:
        """Count the death of a part of the portal."""
        if victim in victims.PORTAL_PARTS:
            self._deaths[victim] += 1

    def get(self, address: str, **params: Any) -> dict[str, Any]:
        """Get `address`, below the jobs, from the portal."""
        answer = self._ask("GET", f"/{address}", params=params)
        content: dict[str, Any] = answer.raise_for_status().json()
        return content

    def wait_until_final(self, job: int) -> dict[str, Any]:
        """Wait until the job is final and return it."""
        reported: dict[str, Any] = {}

        def is_final() -> bool:
            try:
                reported.update(self.get(str(job)))
            except httpx.HTTPError:
                return False
            return bool(reported["is_final"])

        assert eventually(is_final, timeout_s=self.patience_s), f"not over: {reported}"
        return reported

    def lines(self, job: int) -> list[dict[str, Any]]:
        """Return the whole log."""
        lines: list[dict[str, Any]] = []
        after: str | None = "1:0"
        while after is not None:
            page = self.get(f"{job}/logs", after=after, limit=1000)
            lines += page["results"]
            after = page["next"]
        return lines

    def numbers(self, lines: list[dict[str, Any]], attempt: int, rank: int) -> list[int]:
        """List the numbers of the numbered lines of one rank, in the order of the log."""
        texts = [
            line["text"] for line in lines if (line["attempt"], line["rank"]) == (attempt, rank)
        ]
        return [int(found[1]) for text in texts if (found := _NUMBERED.match(text))]

    def count(self, table: str) -> int:
        """Count the rows of a table."""
        with psycopg.connect(self.portal.home.postgres.url()) as database:
            query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))
            return int(database.execute(query).fetchone()[0])

    def report(self, job: int | None) -> str:
        """Collect what is needed to understand a failure."""
        reported = [
            self._text_at(f"{job}{more}") for more in ("", "/attempts", "/events", "/logs") if job
        ]
        lives = self.witness.of(job) if job else self.witness.seen[-6:]
        return "\n".join([*map(str, lives), *reported, self.portal.logs()])

    def _points_below(self, directory: Path) -> HeldPoints:
        return HeldPoints(directory)

    def _text_at(self, address: str) -> str:
        try:
            return f"== {address}\n{self.get(address)}"[:6000]
        except httpx.HTTPError as error:
            return f"== {address}\n{error!r}"

    def _ask(self, method: str, address: str, **content: Any) -> httpx.Response:
        with self.portal.client() as client:
            return client.request(method, JOBS + address, **content)

    def _until_answered(self, ask: Callable[[], Any]) -> Any:
        found: list[Any] = []

        def has_answer() -> bool:
            try:
                answer = ask()
            except httpx.TransportError:
                return False
            if answer is not None:
                found.append(answer)
            return bool(found)

        assert eventually(has_answer, timeout_s=self.patience_s), "no answer"
        return found[0]

    def _is_whole(self) -> bool:
        pids = self.portal.pids()
        return all(part in pids for part in victims.PORTAL_PARTS)
