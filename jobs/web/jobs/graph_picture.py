"""The picture of a job's graph: levels from left to right, what is folded, and where it is drawn.

Jobs of an array are one node. Above `FOLD_ABOVE` nodes the jobs of a level that have succeeded are
one node, and neighboring levels of such jobs only are one level; of the others each level shows
`MOST_IN_LEVEL`. Pure: the template draws it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from jobs.statuses import FINAL_STATUSES, JobStatus
from monarch_client.wire.graph import GraphEdge, GraphJob, JobGraph

FOLD_ABOVE, MOST_IN_LEVEL = 40, 14
NODE_WIDTH, NODE_HEIGHT, GAP_X, GAP_Y, MARGIN = 196, 46, 56, 14, 8
MOST_NAMED = 5
_SWEEPS = 4
_LONGEST_NAME = 18
# Of several jobs, the node shows the first of these that any of them has.
_MOST_TELLING = (
    JobStatus.FAILED,
    JobStatus.RECOVERING,
    JobStatus.STOPPING,
    JobStatus.RUNNING,
    JobStatus.SETTING_UP,
    JobStatus.PROVISIONING,
    JobStatus.QUEUED,
    JobStatus.CANCELLED,
    JobStatus.SUCCEEDED,
)


@dataclass(slots=True)
class Node:
    """A box of the picture: a job, an array, or several jobs that are folded."""

    jobs: list[GraphJob]
    level: int
    array: int | None = None
    folded: bool = False
    is_own: bool = False
    x: float = 0
    y: float = 0
    # The nodes that it depends on, and those of them that a sentence names.
    needs: list[Node] = field(default_factory=list)

    @property
    def job(self) -> GraphJob | None:
        """The job; None if the node has several."""
        return None if self.folded or self.array is not None else self.jobs[0]

    @property
    def is_link(self) -> bool:
        """Whether the node has a page: a deleted job has none."""
        return self.job is None or not self.job.deleted

    @property
    def key(self) -> str:
        """The id of the node in the page, which stays the same while others come and go."""
        if self.folded:
            return f"node-folded-{self.jobs[0].job_id}"
        return f"node-array-{self.array}" if self.job is None else f"node-{self.job.job_id}"

    @property
    def name(self) -> str:
        """The name, without the number."""
        if self.folded:
            return f"{len(self.jobs)} jobs"
        return self.jobs[0].name if self.array is None else self.jobs[0].array_name

    @property
    def number(self) -> str:
        """The number beside the name, as in `#12`; empty for folded jobs."""
        if self.folded:
            return ""
        return f"#{self.jobs[0].job_id}" if self.array is None else f"array {self.array}"

    @property
    def title(self) -> str:
        """Name and number."""
        return f"{self.name} {self.number}".strip()

    @property
    def short_name(self) -> str:
        """The name as far as the box has space for it."""
        space = max(4, _LONGEST_NAME - len(self.number))
        return self.name if len(self.name) <= space else f"{self.name[: space - 1]}…"

    @property
    def status(self) -> str:
        """The status of the job, or the most important one of its jobs; "" if it is unknown."""
        found = {job.status for job in self.jobs}
        return next((str(each) for each in _MOST_TELLING if each in found), "")

    @property
    def state(self) -> str:
        """The statuses as text: "Running"; of several jobs "2 failed, 30 succeeded"."""
        if self.job is not None:
            label = JobStatus(self.job.status).label if self.job.status else "Unknown"
            return f"{label}, deleted" if self.job.deleted else label
        return counted(self.jobs)

    @property
    def after(self) -> str:
        """The nodes that it depends on, as text."""
        named = ", ".join(each.title for each in self.needs[:MOST_NAMED])
        more = len(self.needs) - MOST_NAMED
        return f"{named} and {more} more" if more > 0 else named

    @property
    def middle_y(self) -> float:
        """The vertical middle of the box."""
        return self.y + NODE_HEIGHT / 2


@dataclass(frozen=True, slots=True)
class Edge:
    """A line between two boxes. `state`: the worst of its dependencies."""

    path: str
    state: str


@dataclass(frozen=True, slots=True)
class Picture:
    """The picture."""

    nodes: list[Node]
    edges: list[Edge]
    width: float
    height: float
    is_folded: bool
    can_fold: bool
    counts: str
    is_final: bool


def picture(graph: JobGraph, *, unfolded: bool = False) -> Picture:
    """Return the picture of a graph; `unfolded`: with a box for each job or array."""
    nodes = _nodes(graph)
    levels = _levels(nodes, graph.edges)
    for node in nodes:
        node.level = levels[id(node)]
    can_fold = len(nodes) > FOLD_ABOVE
    if can_fold and not unfolded:
        nodes = _folded(nodes)
    columns = _columns(nodes)
    states = _joined(nodes, graph.edges)
    _untangle(columns, states)
    height = _place(columns)
    return Picture(
        nodes=[node for column in columns for node in column],
        edges=[Edge(_path(*pair), state) for pair, state in states],
        width=2 * MARGIN + len(columns) * (NODE_WIDTH + GAP_X) - GAP_X,
        height=height,
        is_folded=any(node.folded for node in nodes),
        can_fold=can_fold and unfolded,
        counts=counted(graph.jobs),
        is_final=FINAL_STATUSES.issuperset(job.status for job in graph.jobs if job.status),
    )


def counted(jobs: Iterable[GraphJob]) -> str:
    """Return the number of jobs in each status: "2 failed, 30 succeeded"."""
    counts = Counter(job.status for job in jobs)
    words = [
        f"{counts[status]} {status.label.lower()}" for status in _MOST_TELLING if counts[status]
    ]
    if counts[""]:
        words.append(f"{counts['']} unknown")
    return ", ".join(words)


def _nodes(graph: JobGraph) -> list[Node]:
    """Return a node for each job, and for each array with several jobs in the graph."""
    sizes = Counter(job.array for job in graph.jobs if job.array is not None)
    by_key: dict[tuple[str, int], Node] = {}
    for job in graph.jobs:
        array = job.array if job.array is not None and sizes[job.array] > 1 else None
        key = ("job", job.job_id) if array is None else ("array", array)
        node = by_key.setdefault(key, Node([], 0, array))
        node.jobs.append(job)
        node.is_own |= job.job_id == graph.job_id
    return list(by_key.values())


def _by_job(nodes: Iterable[Node]) -> dict[int, Node]:
    return {job.job_id: node for node in nodes for job in node.jobs}


def _levels(nodes: Sequence[Node], edges: Iterable[GraphEdge]) -> dict[int, int]:
    """Return the level of each node: one more than the highest of those that it depends on."""
    of_job = _by_job(nodes)
    after: dict[int, set[int]] = defaultdict(set)
    missing = {id(node): 0 for node in nodes}
    for edge in edges:
        first, then = id(of_job[edge.needs]), id(of_job[edge.job_id])
        if first != then and then not in after[first]:
            after[first].add(then)
            missing[then] += 1
    levels = dict.fromkeys(missing, 0)
    ready = [key for key, count in missing.items() if not count]
    for key in ready:
        for then in after[key]:
            levels[then] = max(levels[then], levels[key] + 1)
            missing[then] -= 1
            if not missing[then]:
                ready.append(then)
    # A job that depends on none is beside the first one that depends on it.
    for key, behind in after.items():
        if not levels[key] and behind:
            levels[key] = min(levels[then] for then in behind) - 1
    return levels


def _folded(nodes: Sequence[Node]) -> list[Node]:
    """Return fewer nodes, with the others folded."""
    by_level = sorted(nodes, key=lambda node: node.level)
    levels = [list(group) for _, group in groupby(by_level, key=lambda node: node.level)]
    found: list[Node] = []
    finished: list[Node] = []
    for level in levels:
        done = [node for node in level if _is_done(node)]
        others = [node for node in level if not _is_done(node)]
        if others:
            # Jobs of one level do not depend on one another: no line leads back.
            found += [*_as_one(finished), *_as_one(done), *_most_important(others)]
            finished = []
        else:
            finished += done
    return found + _as_one(finished)


def _is_done(node: Node) -> bool:
    return not node.is_own and {job.status for job in node.jobs} <= {JobStatus.SUCCEEDED}


def _most_important(nodes: Sequence[Node]) -> list[Node]:
    """Return the most important nodes of a level, and the others folded by status."""
    rank = {str(status): place for place, status in enumerate(_MOST_TELLING)}
    ordered = sorted(nodes, key=lambda node: (not node.is_own, rank.get(node.status, len(rank))))
    shown, others = ordered[:MOST_IN_LEVEL], ordered[MOST_IN_LEVEL:]
    for _, group in groupby(others, key=lambda node: node.status):
        shown += _as_one(list(group))
    return shown


def _as_one(nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes folded into one, unless there are fewer than two."""
    if len(nodes) < 2:  # noqa: PLR2004 - nothing to fold
        return list(nodes)
    jobs = [job for node in nodes for job in node.jobs]
    return [Node(jobs, max(node.level for node in nodes), folded=True)]


def _columns(nodes: Iterable[Node]) -> list[list[Node]]:
    columns: dict[int, list[Node]] = defaultdict(list)
    for node in nodes:
        columns[node.level].append(node)
    return [columns[level] for level in sorted(columns)]


Joined = list[tuple[tuple[Node, Node], str]]
_STATES = ("met", "open", "broken")


def _joined(nodes: Sequence[Node], edges: Iterable[GraphEdge]) -> Joined:
    """Return the pairs of nodes that depend on one another, each with its worst state."""
    of_job = _by_job(nodes)
    worst: dict[tuple[int, int], tuple[tuple[Node, Node], str]] = {}
    for edge in edges:
        pair = of_job[edge.needs], of_job[edge.job_id]
        if pair[0] is pair[1]:
            continue
        key = id(pair[0]), id(pair[1])
        before = worst[key][1] if key in worst else "met"
        worst[key] = pair, max(before, edge.state, key=_STATES.index)
    for (first, then), _ in worst.values():
        then.needs.append(first)
    return list(worst.values())


def _untangle(columns: list[list[Node]], joined: Joined) -> None:
    """Order each column by the positions of its neighbors, so that few lines cross."""
    before: dict[int, list[Node]] = defaultdict(list)
    behind: dict[int, list[Node]] = defaultdict(list)
    for (first, then), _ in joined:
        before[id(then)].append(first)
        behind[id(first)].append(then)
    most = _most_in(columns)
    _place(columns)
    for sweep in range(_SWEEPS):
        is_forward = not sweep % 2
        neighbors = before if is_forward else behind
        for column in columns if is_forward else reversed(columns):
            column.sort(key=lambda node: _mean_y(node, neighbors))
            _stack(column, most)


def _mean_y(node: Node, neighbors: Mapping[int, list[Node]]) -> float:
    near = neighbors.get(id(node), [])
    return sum(each.y for each in near) / len(near) if near else node.y


def _place(columns: list[list[Node]]) -> float:
    """Set the positions of all nodes, and return the height."""
    most = _most_in(columns)
    for number, column in enumerate(columns):
        _stack(column, most)
        for node in column:
            node.x = MARGIN + number * (NODE_WIDTH + GAP_X)
    return 2 * MARGIN + most * (NODE_HEIGHT + GAP_Y) - GAP_Y


def _most_in(columns: Iterable[Sequence[Node]]) -> int:
    return max((len(column) for column in columns), default=1)


def _stack(column: Sequence[Node], most: int) -> None:
    """Set the vertical positions of a column, in the middle of one with `most` nodes."""
    step = NODE_HEIGHT + GAP_Y
    top = MARGIN + (most - len(column)) * step / 2
    for row, node in enumerate(column):
        node.y = top + row * step


def _path(first: Node, then: Node) -> str:
    x1, y1 = first.x + NODE_WIDTH, first.middle_y
    x2, y2 = then.x, then.middle_y
    bend = max(GAP_X / 2, (x2 - x1) / 2)
    return f"M{x1:g} {y1:g}C{x1 + bend:g} {y1:g} {x2 - bend:g} {y2:g} {x2:g} {y2:g}"
