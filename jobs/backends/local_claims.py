"""Claims of clusters on this machine's nodes and GPUs, made without a lock.

A launch reads all claims, chooses, and links its own under the next number, which only one process
can. If a higher number exists after that, it chose from old news: it withdraws and starts over. So
a process that is stopped halfway holds up nobody, and cannot take what others have taken since. The
highest number is never removed, so that none is used again.

A claim counts until the cluster's record says the same, or until its directory is gone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from jobs.backends.local_folders import ClusterFolder, make_directory, write_private


@dataclass(frozen=True, slots=True)
class Claim:
    """What one cluster takes of this machine. Field names are those in the files."""

    cluster: str
    num_nodes: int
    gpus: list[list[int]]  # numbers, by rank


class Claims:
    """The claims of all clusters in the directory `clusters`."""

    def __init__(self, clusters: Path) -> None:
        self._clusters = clusters
        self._directory = clusters / "claims"

    def make(self, folder: ClusterFolder, choose: Callable[[Sequence[Claim]], Claim]) -> Claim:
        """Claim what `choose` picks in view of the others' claims. Its errors go to the caller.

        `folder` exists and is locked by the caller.
        """
        make_directory(self._directory, 0o700)
        while True:
            number = max(self._numbers(), default=0) + 1
            claim = choose(self._of_others(folder.name))
            if self._link(folder, claim, number):
                self._remove_settled(number, folder.name)
                return claim

    def _link(self, folder: ClusterFolder, claim: Claim, number: int) -> bool:
        """Publish the claim under `number`; False if another claim was faster."""
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
        """What other clusters take. Claims are read first: a record follows its claim."""
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
        """Remove older claims that say nothing any more."""
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
        """The claim; None where it was removed just now, or emptied by a power cut."""
        with suppress(FileNotFoundError, json.JSONDecodeError):
            return Claim(**json.loads((self._directory / str(number)).read_text()))
        return None
