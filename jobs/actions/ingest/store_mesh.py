"""The store of rank 0's reports of an attempt's meshes: the latest tree, and what failed when.

Called inside the transaction of `jobs.actions.ingest.ingest_frames`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from jobs.ground import clock
from jobs.logs.frames import Frame
from jobs.logs.handed import redaction_of
from jobs.logs.lines import moment_of
from jobs.logs.mesh_frames import kept_of
from jobs.logs.write import locked_head
from jobs.models import Attempt, MeshTree
from jobs.policies.mesh_changes import changes_between, with_changes

# A runner that sends more often, or the same again, is ignored.
LEAST_PAUSE = timedelta(seconds=0.5)


def masked_tree(attempt: Attempt, trees: list[Frame]) -> Frame:
    """Return the newest of `trees`, redacted; call it before any lock is taken: it takes time."""
    newest = max(trees, key=lambda each: each["t"])
    return {**kept_of(newest, redaction_of(attempt).excerpt), "t": newest["t"]}


def store_mesh(attempt: Attempt, masked: Frame) -> None:
    """Store what `masked_tree` gave, unless a newer one is known."""
    # Every change of an attempt and its log locks the log first; so trees are stored one by one.
    head = locked_head(attempt.pk)
    # A clock that is ahead must not make all that follows look old.
    at = min(moment_of(int(masked["t"] * 1000)), clock.now())
    row = MeshTree.objects.filter(pk=attempt.pk).first()
    if row is not None and at - row.at < LEAST_PAUSE:
        return
    tree = _tree(masked, row)
    if row is not None and row.latest == tree:
        # A tree may be large: what stays is not written again.
        MeshTree.objects.filter(pk=attempt.pk).update(at=at)
        return
    known = row.changes if row else []
    new = changes_between(row.latest if row else None, tree, known)
    # The lines before this one were written before the loss was known.
    marks = {"at": at.timestamp(), "line": head.next_line}
    changes = with_changes(known, [{**each, **marks} for each in new])
    MeshTree(attempt=attempt, at=at, latest=tree, changes=changes).save(force_insert=row is None)


def _tree(masked: Frame, row: MeshTree | None) -> dict[str, Any]:
    tree = {name: value for name, value in masked.items() if name != "t"}
    if not tree["answers"] and row is not None:
        # No host could be queried: what is known of the hosts is their last report.
        tree["hosts"], tree["left_out"] = row.latest["hosts"], row.latest["left_out"]
    return tree
