"""Leases: one holder a slot, free ports only, stale ones taken over."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.backends.file_locks import locked_file
from jobs.backends.local import slots as local_slots
from jobs.backends.local.slots import SLOTS, Slot, SlotLeases
from jobs.errors import BackendError


@pytest.fixture
def leases(tmp_path: Path) -> SlotLeases:
    return SlotLeases(tmp_path / "slots", start="here")


def holder(tmp_path: Path, name: str) -> Path:
    directory = tmp_path / name
    directory.mkdir()
    return directory


def take(leases: SlotLeases, directory: Path, port: int = 0) -> Slot:
    return leases.take(directory, [(0, port), (1, port)], own_uid=False)


def test_two_clusters_never_share_a_slot(leases: SlotLeases, tmp_path: Path) -> None:
    slots = {take(leases, holder(tmp_path, f"c{number}")).number for number in range(5)}
    assert len(slots) == 5


def test_a_cluster_keeps_the_slot_it_has(leases: SlotLeases, tmp_path: Path) -> None:
    cluster = holder(tmp_path, "c")
    assert take(leases, cluster) == take(leases, cluster) == leases.find(cluster)


def test_a_released_slot_is_leased_again(leases: SlotLeases, tmp_path: Path) -> None:
    first, second = holder(tmp_path, "a"), holder(tmp_path, "b")
    slot = take(leases, first)
    leases.release(first)
    leases.release(first)
    assert leases.find(first) is None
    assert take(leases, second) == slot


def test_the_lease_of_a_deleted_cluster_is_taken_over(leases: SlotLeases, tmp_path: Path) -> None:
    first = holder(tmp_path, "a")
    slot = take(leases, first)
    first.rmdir()
    assert take(leases, holder(tmp_path, "b")) == slot


def test_a_lease_cut_off_while_it_was_written_is_free(leases: SlotLeases, tmp_path: Path) -> None:
    cluster = holder(tmp_path, "a")
    slot = take(leases, cluster)
    (tmp_path / "slots" / str(slot.number)).write_text('{"clus')
    assert take(leases, holder(tmp_path, "b")) == slot


def test_a_lease_made_while_an_earlier_one_is_removed_stays(
    leases: SlotLeases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = holder(tmp_path, "a"), holder(tmp_path, "b")
    slot, read, taken = take(leases, first), local_slots._holder, []

    def once(step: Callable[[Path], Path | None]) -> None:
        """Let the next look at a lease be `step`."""

        def look(path: Path) -> Path | None:
            monkeypatch.setattr(local_slots, "_holder", read)
            return step(path)

        monkeypatch.setattr(local_slots, "_holder", look)

    def gone_before(path: Path) -> Path | None:
        leases.release(first)
        once(another_after)
        return read(path)

    def another_after(path: Path) -> Path | None:
        found = read(path)
        taken.append(take(leases, second))
        return found

    once(gone_before)
    assert leases._is_free(slot)
    monkeypatch.setattr(local_slots, "_holder", read)
    assert leases.find(second) == (taken[0] if taken else None)


def test_a_launch_that_was_cut_off_leaves_no_draft_of_its_lease(
    leases: SlotLeases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = holder(tmp_path, "a")
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)
    take(leases, cluster)
    monkeypatch.undo()
    leases.release(cluster)
    assert [path.name for path in (tmp_path / "slots").iterdir()] == ["lock"]


def test_leases_that_cannot_be_removed_now_are_passed_over(
    leases: SlotLeases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A process was stopped while it removed one.
    monkeypatch.setattr(local_slots, "MAX_TRIES", 2)
    for name in "abc":
        take(leases, holder(tmp_path, name))
    for name in "abc":
        (tmp_path / name).rmdir()
    with locked_file(tmp_path / "slots" / "lock", 0):
        cluster = holder(tmp_path, "d")
        assert take(leases, cluster) == leases.find(cluster)


def test_a_network_on_which_a_process_listens_is_passed_over(
    leases: SlotLeases, tmp_path: Path
) -> None:
    with socket.socket() as listener:
        expected = take(leases, holder(tmp_path, "a"))
        leases.release(tmp_path / "a")
        listener.bind((expected.address(1), 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert take(leases, holder(tmp_path, "b"), port) != expected


def test_a_port_taken_on_every_address_is_named(
    leases: SlotLeases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_slots, "MAX_TRIES", 3)
    with socket.socket() as listener:
        listener.bind(("", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(BackendError, match=rf"\[{port}\].*portal.port"):
            take(leases, holder(tmp_path, "a"), port)


def test_every_slot_has_a_network_and_a_user_id_of_its_own() -> None:
    slots = [Slot(number) for number in range(SLOTS)]
    assert len({slot.address(0) for slot in slots}) == SLOTS
    assert all(slot.address(244).rpartition(".")[2] == "254" for slot in slots)
    assert 61184 <= min(slot.uid for slot in slots) <= max(slot.uid for slot in slots) <= 65519
