"""Claims on nodes and GPUs: never more than there is, and no claim waits for another process."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from jobs.backends.local.claims import Claim, Claims
from jobs.backends.local.folders import ClusterFolder, Record
from jobs.errors import NoCapacityError

NODES = 4


def folder_of(tmp_path: Path, name: str) -> ClusterFolder:
    folder = ClusterFolder(tmp_path / name)
    folder.path.mkdir(exist_ok=True)
    return folder


def claim(tmp_path: Path, name: str, nodes: int, *meanwhile: Callable[[], object]) -> int:
    """Claim `nodes` of NODES; `meanwhile` happens once the claims of others have been read."""
    events = list(meanwhile)

    def choose(others: Sequence[Claim]) -> Claim:
        while events:
            events.pop()()
        if sum(other.num_nodes for other in others) + nodes > NODES:
            raise NoCapacityError
        return Claim(name, nodes, [])

    return Claims(tmp_path).make(folder_of(tmp_path, name), choose).num_nodes


def record(tmp_path: Path, name: str, nodes: int) -> None:
    folder_of(tmp_path, name).write_record(Record(nodes, "", "", "", []))


def numbers(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "claims").iterdir())


def test_what_others_have_claimed_or_recorded_is_taken(tmp_path: Path) -> None:
    claim(tmp_path, "a", 2)
    record(tmp_path, "b", 1)
    with pytest.raises(NoCapacityError):
        claim(tmp_path, "c", 2)
    assert claim(tmp_path, "c", 1) == 1


def test_a_claim_and_its_record_count_once(tmp_path: Path) -> None:
    claim(tmp_path, "a", 2)
    record(tmp_path, "a", 2)
    assert claim(tmp_path, "b", 2) == 2


def test_a_claim_ends_with_the_directory_of_its_cluster(tmp_path: Path) -> None:
    claim(tmp_path, "a", 4)
    (tmp_path / "a").rmdir()
    assert claim(tmp_path, "b", 4) == 4


def test_a_repeated_launch_replaces_its_own_claim(tmp_path: Path) -> None:
    claim(tmp_path, "a", 3)
    claim(tmp_path, "a", 2)
    assert claim(tmp_path, "b", 2) == 2
    assert len(numbers(tmp_path)) == 2


def test_a_claim_chosen_from_old_news_is_withdrawn(tmp_path: Path) -> None:
    with pytest.raises(NoCapacityError):
        claim(tmp_path, "a", 3, lambda: claim(tmp_path, "b", 2))
    assert claim(tmp_path, "c", 2) == 2


def test_a_number_that_was_given_back_meanwhile_makes_no_old_claim_valid(tmp_path: Path) -> None:
    # The process was stopped for so long that its number is free again.

    def others() -> None:
        for name, nodes in (("b", 1), ("c", 2), ("d", 1)):
            claim(tmp_path, name, nodes)
            record(tmp_path, name, nodes)

    with pytest.raises(NoCapacityError):
        claim(tmp_path, "a", 1, others)
    assert [
        json.loads((tmp_path / "claims" / name).read_text())["cluster"]
        for name in numbers(tmp_path)
    ] == ["d"]
