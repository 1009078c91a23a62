"""The push carrier against a portal that misbehaves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from monarch_client.runner.base.config import AttemptConfig, _parse
from monarch_client.runner.base.lines import Piece
from monarch_client.runner.delivery import push
from monarch_client.runner.delivery.push import Callbacks, PortalConnection, PushCarrier
from monarch_client.runner.journal.journal import Journal
from monarch_client.runner.journal.recorder import Recorder
from monarch_client.runner.journal.samples import Samples
from monarch_client.runner.vocabulary.stack_requests import StackRequest
from tests.fake_ingest import FakeIngest
from tests.runner_harness import wait_until
from tests.thief import Thief
from tests.unit.runner.base.test_config import MINIMAL


@pytest.fixture
def ingest() -> Iterator[FakeIngest]:
    portal = FakeIngest("t")
    yield portal
    portal.stop()


@pytest.fixture(autouse=True)
def haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(push, "_FIRST_BACK_OFF_S", 0.01)
    monkeypatch.setattr(push, "_LAST_BACK_OFF_S", 0.05)


class Pushing:
    """A carrier with its journal; `drained` is set when it has no more to do."""

    def __init__(self, folder: Path, ingest: FakeIngest, **config: Any) -> None:
        self.drained = threading.Event()
        self.closed = threading.Event()
        self.stops: list[float] = []
        self.asks: list[list[StackRequest]] = []
        # One entry for each order to connect to the gateway.
        self.gateways: list[bool] = []
        self.samples = Samples()
        self.journal = Journal(folder / "journal")
        self.recorder = Recorder(self.journal, 0)
        settings: AttemptConfig = _parse({**MINIMAL, "portal_url": ingest.url, **config})
        self.carrier = PushCarrier(
            self.journal,
            PortalConnection(settings),
            Callbacks(
                self.drained.set,
                self.closed.set,
                self.stops.append,
                self.asks.append,
                lambda: self.gateways.append(True),
            ),
            self.samples,
        )
        self.carrier.start()

    def lines(self, count: int, size: int = 10) -> None:
        self.recorder.write_lines("stdout", [Piece("x" * size) for _ in range(count)])

    def finish(self) -> None:
        self.carrier.finish()
        assert self.drained.wait(20)


def sequence(ingest: FakeIngest) -> list[int]:
    return [frame["seq"] for frame in ingest.frames]


def test_lines_arrive_in_order_and_an_idle_runner_beats(
    tmp_path: Path, ingest: FakeIngest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push, "HEARTBEAT_S", 0.05)
    pushing = Pushing(tmp_path, ingest)
    ingest.wait_for(lambda: 0 in ingest.requests)
    pushing.lines(3)
    ingest.wait_for(lambda: sequence(ingest) == [1, 2, 3])
    pushing.lines(2)
    pushing.finish()
    assert sequence(ingest) == [1, 2, 3, 4, 5]


def test_nothing_is_lost_or_doubled_while_the_portal_fails(
    tmp_path: Path, ingest: FakeIngest
) -> None:
    ingest.faults = [500, 502, 503, 429]
    ingest.lost_answers = 2
    pushing = Pushing(tmp_path, ingest)
    pushing.lines(50)
    pushing.finish()
    assert sequence(ingest) == list(range(1, 51))
    assert ingest.duplicates == 100  # two answers were lost, and the lines sent again


def test_a_portal_that_moves_is_found_again(tmp_path: Path, ingest: FakeIngest) -> None:
    portal_file = tmp_path / "portal.json"
    pushing = Pushing(tmp_path, ingest, portal_file=str(portal_file))
    pushing.lines(2)
    ingest.wait_for(lambda: sequence(ingest) == [1, 2])
    ingest.stop()
    pushing.lines(2)
    ingest.move()
    portal_file.write_text(f'{{"url": "{ingest.url}"}}')
    pushing.finish()
    assert sequence(ingest) == [1, 2, 3, 4]


def test_a_batch_stays_below_the_portals_limit(tmp_path: Path, ingest: FakeIngest) -> None:
    pushing = Pushing(tmp_path, ingest)
    pushing.lines(400, size=30_000)
    pushing.finish()
    assert sequence(ingest) == list(range(1, 401))
    assert max(ingest.requests) <= 1024 * 1024


def test_batches_get_smaller_while_they_fail(tmp_path: Path, ingest: FakeIngest) -> None:
    ingest.faults = [503, 503, 503]
    pushing = Pushing(tmp_path, ingest)
    pushing.lines(20, size=30_000)
    pushing.finish()
    assert sequence(ingest) == list(range(1, 21))
    first, second, third, fourth = (size // 30_000 for size in ingest.requests[:4])
    assert (first, second, third, fourth) == (20, 10, 5, 2)


def test_a_refused_frame_is_replaced_and_the_rest_arrive(
    tmp_path: Path, ingest: FakeIngest
) -> None:
    ingest.refuse = lambda frame: frame.get("text") == "poison"
    pushing = Pushing(tmp_path, ingest)
    texts = ["a", "b", "poison", "c"]
    pushing.recorder.write_lines("stdout", [Piece(text) for text in texts])
    pushing.finish()
    assert sequence(ingest) == [1, 2, 3, 4]
    assert ingest.texts() == ["a", "b", "c"]
    assert "a frame I do not like" in ingest.texts("portal")[0]


def test_what_a_proxy_answers_for_the_portal_is_never_final(
    tmp_path: Path, ingest: FakeIngest
) -> None:
    ingest.faults = [400, 401, 403, 404, 410] * 3
    pushing = Pushing(tmp_path, ingest)
    pushing.lines(3)
    pushing.finish()
    assert sequence(ingest) == [1, 2, 3]
    assert ingest.texts("portal") == []


@pytest.mark.parametrize("code", ["not_authenticated", "permission_denied", "not_found"])
def test_a_portal_that_does_not_know_us_is_retried(
    tmp_path: Path, ingest: FakeIngest, code: str
) -> None:
    ingest.refusals = [code]
    pushing = Pushing(tmp_path, ingest)
    pushing.lines(2)
    pushing.finish()
    assert sequence(ingest) == [1, 2]
    assert not pushing.closed.is_set()


def test_the_portals_stop_request_is_passed_on_once(tmp_path: Path, ingest: FakeIngest) -> None:
    pushing = Pushing(tmp_path, ingest)
    pushing.lines(1)
    ingest.wait_for(lambda: sequence(ingest) == [1])
    ingest.orders = {"grace_s": 7}
    for count in (2, 3):
        pushing.lines(1)
        ingest.wait_for(lambda count=count: len(sequence(ingest)) == count)
    pushing.finish()
    assert pushing.stops == [7.0]


@pytest.mark.parametrize("orders", [{}, {"grace_s": None}, {"grace_s": "soon"}])
def test_an_unusable_request_is_ignored(tmp_path: Path, ingest: FakeIngest, orders: Any) -> None:
    ingest.orders = orders
    pushing = Pushing(tmp_path, ingest)
    pushing.lines(1)
    pushing.finish()
    assert (pushing.stops, sequence(ingest)) == ([], [1])


def test_a_closed_attempt_ends_the_pushing_and_is_reported(
    tmp_path: Path, ingest: FakeIngest
) -> None:
    ingest.refusals = ["attempt_closed"]
    pushing = Pushing(tmp_path, ingest)
    pushing.lines(1)
    assert pushing.closed.wait(10)
    pushing.lines(1)
    assert not pushing.drained.is_set()
    pushing.finish()
    assert len(ingest.requests) == 1


def test_what_the_portal_has_stored_is_not_sent_again_by_a_new_runner(
    tmp_path: Path, ingest: FakeIngest
) -> None:
    first = Pushing(tmp_path, ingest)
    first.lines(5)
    first.finish()
    second = Pushing(tmp_path, ingest)
    second.lines(1)
    second.finish()
    assert sequence(ingest) == [1, 2, 3, 4, 5, 6]
    assert ingest.duplicates == 0


def test_an_answer_that_stores_less_makes_the_rest_come_again(
    tmp_path: Path, ingest: FakeIngest, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = ingest.take
    forgetful = [True]

    def take_half(body: bytes) -> tuple[int, dict[str, Any]]:
        status, answer = take(body)
        if forgetful and body:
            forgetful.clear()
            return status, {"acked": {"0": 2}}
        return status, answer

    monkeypatch.setattr(ingest, "take", take_half)
    pushing = Pushing(tmp_path, ingest)
    pushing.lines(5)
    pushing.finish()
    assert sequence(ingest) == [1, 2, 3, 4, 5]
    assert ingest.duplicates == 3


def test_stack_dumps_are_requested_once_however_often_the_portal_repeats_it(
    tmp_path: Path, ingest: FakeIngest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push, "HEARTBEAT_S", 0.05)
    ingest.stacks = [{"id": 5, "rank": 1, "pid": None}]
    pushing = Pushing(tmp_path, ingest)
    ingest.wait_for(lambda: len(ingest.requests) > 4)
    assert pushing.asks == [[StackRequest(5, 1)]]
    ingest.stacks = []
    wait_until(lambda: pushing.asks[1:])
    assert pushing.asks == [[StackRequest(5, 1)], []]
    pushing.finish()


def test_an_order_to_connect_to_the_gateway_is_passed_on_once(tmp_path, ingest, monkeypatch):
    monkeypatch.setattr(push, "HEARTBEAT_S", 0.05)
    ingest.wants_gateway = True
    pushing = Pushing(tmp_path, ingest)
    ingest.wait_for(lambda: len(ingest.requests) > 4)
    assert pushing.gateways == [True]
    pushing.finish()


def test_a_thief_of_the_portals_port_gets_no_token_and_acknowledges_no_line(tmp_path, ingest):
    pushing = Pushing(tmp_path, ingest)
    pushing.lines(1)
    ingest.wait_for(ingest.texts)
    port = urlsplit(ingest.url).port
    ingest.stop()
    with Thief(port, tmp_path) as thief:
        pushing.lines(2)
        pushing.recorder.write("end", reason="COMPLETED")
        pushing.carrier.finish()
        wait_until(lambda: thief.loot.count(b"GET /api/v1/proof") > 1)
        assert not pushing.drained.is_set()
        assert not pushing.journal.is_read
    assert b"Bearer" not in thief.loot
    assert b"POST" not in thief.loot
    ingest.start()
    assert pushing.drained.wait(20)
    assert len(ingest.texts()) == 3
    assert ingest.holes == []
