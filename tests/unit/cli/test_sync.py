"""mportal sync: what it prints, when it syncs again, and how it ends."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from monarch_client.cli import code_sync as module
from monarch_client.gateway.code_sync import SyncResult
from monarch_client.sync.sending import OnProgress, SyncError, SyncProgress

RESULT = SyncResult("a" * 64, ("x.py",), 2, 3 * 1024 * 1024, 4, {}, 0.31)


class Session:
    """A session in a job, without a network."""

    error = "The session was lost."

    def __init__(self, _opened: object) -> None:
        self.lost = threading.Event()

    def close(self) -> None:
        """End nothing."""


class Code:
    """The code of a folder that changes all the time. The session is lost after the last sync."""

    plan: list[SyncResult | Exception]
    # The portal's answer about large code.
    refusal = ""

    def __init__(self, session: Session, folder: Path, on_progress: OnProgress) -> None:
        self.folder = folder
        self._session = session
        self._on_progress = on_progress

    def run(self) -> SyncResult:
        self._on_progress(SyncProgress(1, 2, 10, 20))
        outcome = self.plan.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def is_changed(self) -> bool:
        if not self.plan:
            self._session.lost.set()
            return False
        return True

    @property
    def is_keeping(self) -> bool:
        """Whether the portal has not answered."""
        return bool(self.refusal)

    def await_kept(self) -> str:
        return self.refusal

    def close(self) -> None:
        """Close nothing."""


@pytest.fixture
def plan(portal, monkeypatch) -> list[SyncResult | Exception]:
    """Return what the syncs lead to, one after the other."""

    @contextmanager
    def opened_session(job: str, _project: None, stated: dict[str, str]) -> Iterator[str]:
        assert (job, stated) == ("rl/42", {"kind": "sync"})
        yield job

    monkeypatch.setattr(module, "opened_session", opened_session)
    monkeypatch.setattr(module, "NodeSession", Session)
    monkeypatch.setattr(module, "CodeSync", Code)
    monkeypatch.setattr(Code, "plan", [RESULT], raising=False)
    monkeypatch.setattr(module.FolderWatch, "_may_have_changed", lambda _self: True)
    return Code.plan


def test_a_sync_says_what_it_sent_and_shows_no_progress_without_a_terminal(mportal, plan):
    done = mportal("sync", "42")
    assert done.exit_code == 0, done.stderr
    sent = "2 files (3.0 MiB) sent in 0.3 s."
    assert done.stdout == f"4 nodes of job 42 have the code: {sent}\n"
    assert "Sending" not in done.stderr


def test_a_sync_that_takes_long_prints_its_progress_without_a_terminal(mportal, plan, monkeypatch):
    monkeypatch.setattr(module, "_PRINT_EVERY_S", 0.0)
    assert "Sending: 1/2 files, 10 B of 20 B\n" in mportal("sync", "42").stderr


def test_programs_read_the_result_as_json_or_the_name_of_the_tree(mportal, plan, tmp_path):
    plan.append(RESULT)
    found = json.loads(mportal("sync", "42", str(tmp_path), "-o", "json").stdout)
    assert (found["tree"], found["files"], found["ranks"]) == ("a" * 64, 2, 4)
    assert mportal("sync", "42", "-q").stdout == f"{'a' * 64}\n"


def test_a_rank_that_is_late_is_named_and_so_is_code_that_is_not_kept(mportal, plan):
    plan[0] = SyncResult("a" * 64, (), 0, 0, 1, {1: "it does not answer"}, 0.0, "too large")
    done = mportal("sync", "42")
    assert done.stdout.startswith("1 node of job 42 has the code")
    assert "Node 1 follows once it is back: it does not answer." in done.stderr
    assert "does not keep this code for a recovered attempt: too large." in done.stderr


def test_the_portals_refusal_of_large_code_is_shown_by_the_sync_that_sent_it(
    mportal, plan, monkeypatch
):
    monkeypatch.setattr(Code, "refusal", "The archive is larger than 512 MiB.")
    done = mportal("sync", "42")
    assert (done.exit_code, len(done.stdout.splitlines())) == (0, 1)
    refusal = "does not keep this code for a recovered attempt: The archive is larger than 512 MiB."
    assert done.stderr.endswith(f"{refusal}\n")


def test_a_failure_is_an_error_of_one_sync_and_the_watch_goes_on(mportal, plan):
    plan[:] = [RESULT, SyncError("No node has switched."), RESULT]
    done = mportal("sync", "42", "--watch")
    assert done.stdout.count("have the code") == 2
    assert "Error: No node has switched." in done.stderr
    assert done.exit_code == 125
    assert "The session was lost." in done.stderr
    plan[:] = [SyncError("No node has switched.")]
    assert mportal("sync", "42").exit_code == 125


def test_ctrl_c_ends_a_watch(mportal, plan, monkeypatch):
    def interrupted(_self: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(module.FolderWatch, "_may_have_changed", interrupted)
    assert mportal("sync", "42", "--watch").exit_code == 0
