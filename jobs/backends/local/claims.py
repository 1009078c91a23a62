"""Claim nodes and GPUs of this machine for clusters, without a lock.

A launch reads all claims, chooses, and hard-links its claim under the next number, which only one
process can do. If a higher number exists by then, the choice was based on stale claims: the launch
withdraws its claim and starts over. A process that stops halfway therefore blocks no other, and
cannot take what others have claimed since. The highest number is never removed, so no number is
used twice.

A claim counts until the cluster's record replaces it, or its directory no longer exists.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from jobs.backends.local.folders import ClusterFolder
from jobs.backends.private_files import make_directory, write_private


@dataclass(frozen=True, slots=True)
class Claim:
    """The nodes and GPUs that one cluster claims. Field names are those in the files."""

    cluster: str
    num_nodes: int
    gpus: list[list[int]]  # numbers, by rank


class Claims:
    """The claims of all clusters in the directory `clusters`."""

    def __init__(self, clusters: Path) -> None:
        self._clusters = clusters
        self._directory = clusters / "claims"

    def make(self, folder: ClusterFolder, choose: Callable[[Sequence[Claim]], Claim]) -> Claim:
        """Store and return the claim that `choose` picks, given the claims of other clusters.

        Errors of `choose` pass through. `folder` must exist, and the caller must hold its lock.
        """
        make_directory(self._directory, 0o700)
        while True:
            number = max(self._numbers(), default=0) + 1
            claim = choose(self._of_others(folder.name))
            if self._link(folder, claim, number):
                self._remove_settled(number, folder.name)
                return claim

    def _link(self, folder: ClusterFolder, claim: Claim, number: int) -> bool:
        """Publish the claim under `number`; return False if another claim was faster."""
        draft = folder.path / "claim"
        write_private(draft, asdict(claim))
        target = self._directory / str(number)
        try:
            os.link(draft, target)
        except FileExistsError:
            return False
        finally:
            draft.unlink()
        if max(self._numbers()) > number:
            target.unlink(missing_ok=True)
            return False
        return True

    def _of_others(self, own_name: str) -> list[Claim]:
        """Return other clusters' claims. Reads claims before records, which replace them."""
        claims = {
            claim.cluster: claim
            for number in sorted(self._numbers())
            if (claim := self._read(number)) is not None
            and (self._clusters / claim.cluster).is_dir()
        }
        claims |= {claim.cluster: claim for claim in self._recorded()}
        return [claim for claim in claims.values() if claim.cluster != own_name]

    def _recorded(self) -> Iterator[Claim]:
        for path in self._clusters.iterdir():
            record = ClusterFolder(path).record() if path.is_dir() else None
            if record is not None:
                yield Claim(path.name, record.num_nodes, record.gpus)

    def _remove_settled(self, own_number: int, own_name: str) -> None:
        """Remove older claims that a record replaces, or whose cluster no longer exists."""
        for number in self._numbers():
            if number < own_number and self._is_settled(self._read(number), own_name):
                (self._directory / str(number)).unlink(missing_ok=True)

    def _is_settled(self, claim: Claim | None, own_name: str) -> bool:
        if claim is None or claim.cluster == own_name:
            return True
        folder = ClusterFolder(self._clusters / claim.cluster)
        return not folder.path.is_dir() or folder.record() is not None

    def _numbers(self) -> list[int]:
        return [int(path.name) for path in self._directory.iterdir() if path.name.isdigit()]

    def _read(self, number: int) -> Claim | None:
        """Return the claim; None if it was just removed, or is empty after a power cut."""
        with suppress(FileNotFoundError, json.JSONDecodeError):
            return Claim(**json.loads((self._directory / str(number)).read_text()))
        return None
