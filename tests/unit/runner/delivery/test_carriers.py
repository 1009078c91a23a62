"""The choice of the carrier: requested, probed, or taken over from an earlier runner."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from monarch_client.runner.base.config import NodeFolder, _parse
from monarch_client.runner.base.lines import Piece
from monarch_client.runner.delivery import carriers
from monarch_client.runner.delivery.carriers import carrier_of, probe_portal
from monarch_client.runner.delivery.plain_carrier import PlainCarrier
from monarch_client.runner.delivery.print_carrier import PrintCarrier
from monarch_client.runner.delivery.push import Callbacks, PushCarrier
from monarch_client.runner.journal.journal import Journal
from monarch_client.runner.journal.recorder import Recorder
from monarch_client.runner.journal.samples import MOST_BYTES, Samples
from monarch_client.runner.place import Place
from monarch_client.runner.vocabulary.frames import sample_line
from monarch_client.skypilot.log_frames import PacketFinder
from tests.fake_ingest import FakeIngest
from tests.unit.runner.base.test_config import MINIMAL

MakePlace = Callable[..., Place]
NOTHING = Callbacks(lambda: None, lambda: None, lambda _grace_s: None)


@pytest.fixture
def make_place(tmp_path: Path) -> MakePlace:
    def make(**config: Any) -> Place:
        folder = NodeFolder(tmp_path)
        folder.state.mkdir(exist_ok=True)
        unused: Any = None
        recorder = Recorder(Journal(folder.journal), 0)
        return Place(_parse({**MINIMAL, **config}), 0, folder, unused, unused, recorder, Samples())

    return make


@pytest.fixture
def ingest() -> Iterator[FakeIngest]:
    portal = FakeIngest("t")
    yield portal
    portal.stop()


def test_a_portal_that_answers_is_reached_even_if_it_refuses(
    make_place: MakePlace, ingest: FakeIngest
) -> None:
    place = make_place(portal_url=ingest.url)
    assert probe_portal(place) == ""
    ingest.refusals = ["attempt_closed"]
    assert probe_portal(place) == ""


def test_another_server_at_the_portals_address_is_not_it(
    make_place: MakePlace, ingest: FakeIngest
) -> None:
    ingest.faults = [407]
    assert "407" in probe_portal(make_place(portal_url=ingest.url))


def test_a_refused_connection_is_reported_at_once_where_a_retry_cannot_help(
    make_place: MakePlace, ingest: FakeIngest
) -> None:
    ingest.stop()
    assert "refused" in probe_portal(make_place(portal_url=ingest.url))
    assert "no address" in probe_portal(make_place(portal_url=""))


def test_a_portal_that_starts_again_is_waited_for(
    make_place: MakePlace, ingest: FakeIngest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carriers, "_is_loopback", lambda _url: False)
    monkeypatch.setattr(carriers, "_PAUSE_S", 0.02)
    ingest.faults = [502] * 3
    assert probe_portal(make_place(portal_url=ingest.url)) == ""


def test_one_that_never_answers_is_given_up_in_time(
    make_place: MakePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carriers, "PROBE_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        assert probe_portal(make_place(portal_url=url)) != ""


def test_what_an_earlier_runner_has_chosen_stays(make_place: MakePlace) -> None:
    for name, kind in (("push", PushCarrier), ("pull", PrintCarrier)):
        place = make_place(carrier="auto")
        place.folder.carrier.write_text(name)
        assert isinstance(carrier_of(place, Journal(place.folder.journal), NOTHING), kind)


def test_an_attempt_that_ends_during_the_probe_is_printed_whole(
    make_place: MakePlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = make_place(carrier="auto", portal_url="")
    begins, drained = threading.Event(), threading.Event()
    monkeypatch.setattr(carriers, "probe_portal", lambda _place: begins.wait(10) and "why")
    out = tmp_path / "out"
    fd = os.open(out, os.O_WRONLY | os.O_CREAT)
    monkeypatch.setattr(PrintCarrier.__init__, "__defaults__", (fd,))
    journal = Journal(place.folder.journal)
    recorder = Recorder(journal, 0)
    carrier = carrier_of(
        place._replace(recorder=recorder), journal, NOTHING._replace(on_drained=drained.set)
    )
    carrier.start()
    recorder.write_lines("stdout", [Piece("hi")])
    carrier.finish()
    begins.set()
    assert drained.wait(60)
    os.close(fd)
    packets = PacketFinder(17).feed(out.read_bytes())
    assert b'"text":"hi"' in b"".join(frame for packet in packets for frame in packet.frames)


def test_a_log_without_a_reader_ends_the_printing_and_not_the_runner(
    make_place: MakePlace,
) -> None:
    place = make_place()
    journal = Journal(place.folder.journal)
    drained = threading.Event()
    reading, writing = os.pipe()
    os.close(reading)
    carrier = PrintCarrier(journal, 17, drained.set, writing)
    carrier.start()
    Recorder(journal, 0).write_lines("stdout", [Piece("hi")])
    carrier.finish()
    assert drained.wait(60)
    os.close(writing)


def test_where_frames_are_printed_samples_are_printed_too_but_for_people_they_are_not(
    make_place: MakePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monarch_client.runner.delivery.print_carrier._FIRST_SAMPLES_S", 0.0)
    monkeypatch.setattr("monarch_client.runner.delivery.print_carrier._SAMPLES_S", 60.0)
    printed = {}
    for kind in (PrintCarrier, PlainCarrier):
        place = make_place()
        journal = Journal(place.folder.state / kind.__name__)
        samples = Board()
        samples.put(0, sample_line(0, {"cpu": 1.0}))
        Recorder(journal, 0).write_lines("stdout", [Piece("hi")])
        printed[kind] = printed_by(kind, journal, samples)
    found = [
        frame for each in PacketFinder(17).feed(printed[PrintCarrier]) for frame in each.frames
    ]
    # The last packet of frames, with the verdict as a rule, is printed twice.
    assert [json.loads(frame)["kind"] for frame in found] == ["line", "metrics", "line"]
    assert printed[PlainCarrier] == b"rank 0| hi\n"


class Board(Samples):
    """A store of samples that records when they are taken."""

    def __init__(self) -> None:
        super().__init__()
        self.gone = threading.Event()

    def take(self, most: int = MOST_BYTES) -> list[bytes]:
        taken = super().take(most)
        if taken:
            self.gone.set()
        return taken


def printed_by(kind: Any, journal: Journal, samples: Board) -> bytes:
    """Return the output of a carrier that gets `samples` at its start."""
    reading, writing = os.pipe()
    drained = threading.Event()
    arguments = (journal, drained.set) if kind is PlainCarrier else (journal, 17, drained.set)
    carrier = kind(*arguments, writing)
    carrier.samples = samples
    carrier.start()
    assert kind is PlainCarrier or samples.gone.wait(60)
    carrier.finish()
    assert drained.wait(60)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read()


def test_a_log_that_is_slow_to_take_it_gets_everything(make_place: MakePlace) -> None:
    place = make_place()
    journal = Journal(place.folder.journal)
    drained = threading.Event()
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    carrier = PrintCarrier(journal, 17, drained.set, writing)
    carrier.start()
    Recorder(journal, 0).write_lines("stdout", [Piece(os.urandom(9000).hex()) for _ in range(50)])
    carrier.finish()
    printed: list[bytes] = []
    reader = threading.Thread(
        target=lambda: printed.extend(iter(lambda: os.read(reading, 5000), b""))
    )
    reader.start()
    assert drained.wait(60)
    os.close(writing)
    reader.join(10)
    os.close(reading)
    finder = PacketFinder(17)
    packets = finder.feed(b"".join(printed))
    assert len({frame for packet in packets for frame in packet.frames}) == 50
    assert finder.damaged == 0
