"""The actors of a job by the names that its program gave them, on each host. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jobs.web.base.figures import short_name
from monarch_client.runner.vocabulary import mesh_states
from monarch_client.wire.mesh import Mesh, MeshChange, MeshHost

MOST_NAMES, MOST_HOSTS = 50, 48
# The worst first; all others are healthy.
_WORST = (
    mesh_states.UNREACHABLE,
    mesh_states.DEAD,
    mesh_states.FAILED,
    mesh_states.SILENT,
    mesh_states.POISONED,
    mesh_states.UNKNOWN,
)
_MS = 1000


@dataclass(frozen=True, slots=True)
class HeatCell:
    """The actors of one name on one host. `at_ms`: when they came into their state."""

    host: MeshHost
    state: str
    actors: int
    unwell: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class HeatRow:
    """The actors of one name. A cell is None where there are none of them."""

    name: str
    cells: list[HeatCell | None]


@dataclass(frozen=True, slots=True)
class ActorHeat:
    """A picture of all actors: names by hosts. `unwell`: the actors that are not healthy."""

    hosts: list[MeshHost]
    rows: list[HeatRow]
    unwell: int
    names_left_out: int
    hosts_left_out: int


def actor_heat(found: Mesh, *, only_unwell: bool) -> ActorHeat:
    """Return the picture; with `only_unwell`, of the names and hosts that are not healthy."""
    changed = _changed_ms(found.changes)
    reported_ms = int(found.at.timestamp() * _MS) if found.at else 0
    cells: dict[str, dict[str, HeatCell]] = defaultdict(dict)
    for host in found.hosts:
        for name, states in _states(host).items():
            worst = min(states, key=_rank_of)
            unwell = sum(_rank_of(state) < len(_WORST) for state in states)
            at_ms = changed.get(host.id, reported_ms) if unwell else reported_ms
            cells[name][host.id] = HeatCell(host, worst, len(states), unwell, at_ms)
    sick = {id(cell) for row in cells.values() for cell in row.values() if cell.unwell}
    hosts = sorted(found.hosts, key=lambda host: not _has(cells, host, sick))
    hosts = [
        host
        for host in hosts
        if any(host.id in row for row in cells.values())
        and (not only_unwell or _has(cells, host, sick))
    ]
    names = [
        name
        for name, row in sorted(cells.items(), key=lambda each: -_unwell(each[1]))
        if not only_unwell or _unwell(row)
    ]
    # Of many, the unhealthy ones are shown, in the order of their ranks.
    shown = {host.id for host in hosts[:MOST_HOSTS]}
    columns = [host for host in found.hosts if host.id in shown]
    return ActorHeat(
        hosts=columns,
        rows=[
            HeatRow(name, [cells[name].get(host.id) for host in columns])
            for name in names[:MOST_NAMES]
        ],
        unwell=sum(map(_unwell, cells.values())),
        names_left_out=max(0, len(names) - MOST_NAMES),
        hosts_left_out=max(0, len(hosts) - MOST_HOSTS),
    )


def _states(host: MeshHost) -> dict[str, list[str]]:
    """Return the states of a host's actors by name: no actor is better than its process."""
    states: dict[str, list[str]] = defaultdict(list)
    for proc in host.procs:
        for actor in proc.actors:
            own = (actor.state, proc.state, host.state)
            states[short_name(actor.id)].append(min(own, key=_rank_of))
    return states


def _changed_ms(changes: Sequence[MeshChange]) -> dict[str, int]:
    """Return the time of the latest failure of each host; changes are newest first."""
    latest: dict[str, int] = {}
    for change in changes:
        if change.is_failure and change.host:
            latest.setdefault(change.host, int(change.at.timestamp() * _MS))
    return latest


def _rank_of(state: str) -> int:
    return _WORST.index(state) if state in _WORST else len(_WORST)


def _unwell(row: Mapping[str, HeatCell]) -> int:
    return sum(cell.unwell for cell in row.values())


def _has(cells: Mapping[str, Mapping[str, HeatCell]], host: MeshHost, sick: set[int]) -> bool:
    return any(id(row[host.id]) in sick for row in cells.values() if host.id in row)
