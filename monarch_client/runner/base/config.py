"""Parse attempt.json, and define the files of a node.

The portal writes the file; this module is the only one that knows its keys.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from monarch_client.runner.vocabulary import carriers

if TYPE_CHECKING:
    from typing import Sequence

FORMAT = 1
# Monarch reads ids in this order of letters; in the other common one, every fifth number overflows
# its 64 bits and the worker refuses its address.
_BASE58 = "123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ"


class ConfigError(Exception):
    """An attempt.json that this version of the runner cannot use."""


class NodeAddress(NamedTuple):
    """One machine of the attempt."""

    rank: int
    address: str


class Timeouts(NamedTuple):
    """The time limits of an attempt, in seconds."""

    setup_s: float = 3600.0
    workers_s: float = 60.0
    grace_s: float = 10.0
    peer_silence_s: float = 15.0


class Authority(NamedTuple):
    """The attempt's certificate authority, PEM."""

    ca_cert: str
    ca_key: str


class Upload(NamedTuple):
    """A tar.gz beside attempt.json, and the target that it is unpacked to."""

    archive: Path
    # "workdir", "~/..." or "/...".
    target: str
    # Digest of the archive; "" if the portal did not send it.
    sha256: str = ""


class Repository(NamedTuple):
    """A git repository, and a branch, tag or commit; "" is its default branch."""

    url: str
    ref: str = ""

    def __str__(self) -> str:
        return f"{self.url} at {self.ref}" if self.ref else self.url


@dataclass(frozen=True)
class AttemptConfig:
    """The configuration of an attempt, as attempt.json defines it."""

    attempt_id: int
    job_id: int
    attempt_number: int
    project: str
    job_name: str
    portal_url: str
    portal_file: str | None
    token: str
    nodes: tuple[NodeAddress, ...]
    setup: str | None
    run: str
    envs: dict[str, str]
    meshes: dict[str, int] | None
    port: int
    hub_port: int
    # The port of each node's streams, see `node_streams`.
    node_port: int
    tls: Authority | None
    python: str
    timeouts: Timeouts
    linger_s: float
    uploads: tuple[Upload, ...] = ()
    # How frames leave rank 0.
    carrier: str = carriers.PUSH
    # The version to install where a Monarch job finds none; "" installs nothing.
    torchmonarch: str = ""
    # Names of variables of the environment that hold the job's secrets.
    secrets: tuple[str, ...] = ()
    setup_always: bool = False
    # Seconds between two samples of processor, memory and GPUs; 0 switches them off.
    metrics_s: float = 10.0
    # The token of the job's programs, which do not get the runner's own `token`.
    driver_token: str = ""
    # Remarks of the portal for the start of the job's log.
    remarks: tuple[str, ...] = ()
    # Whether this node connects to the portal's gateway by itself, for programs on laptops.
    gateway: bool = False
    # Whether it has workers and no driver: the driver of another job uses them.
    serves_parent: bool = False
    # The repository to fetch the work directory from, if it is not uploaded.
    repository: Repository | None = None

    @property
    def is_monarch(self) -> bool:
        """Whether every node has a worker of Monarch, for a driver."""
        return self.meshes is not None

    @property
    def waits_for_laptops(self) -> bool:
        """Whether it has workers and no driver: programs on laptops use them."""
        return self.is_monarch and self.gateway and not self.run.strip()

    @property
    def has_driver(self) -> bool:
        """Whether `run` is a driver, which uses the workers of every node."""
        return self.is_monarch and not (self.serves_parent or self.waits_for_laptops)

    @property
    def ranks(self) -> tuple[int, ...]:
        """All ranks, in order."""
        return tuple(node.rank for node in self.nodes)

    def address_of(self, rank: int) -> str:
        """Return the private address of a node."""
        return self.nodes[rank].address

    def rank_at(self, text: str) -> int | None:
        """Return the rank whose worker's address is in `text`, with or without a scheme."""
        for rank in self.ranks:
            ours = f"{self.address_of(rank)}:{self.port}"
            # Do not match inside a longer address: `gpunode1:22222` is not `node1:22222`.
            whole = rf"(?<![\w.-]){re.escape(ours)}(?!\d)"
            if ours in text and re.search(whole, text):
                return rank
        return None

    def worker_address(self, rank: int) -> str:
        """Return the address of the Monarch worker of `rank`, with its service id."""
        scheme = "tls" if self.tls else "tcp"
        service = service_id(self.attempt_id, rank)
        return f"service<{service}>@{scheme}://{self.address_of(rank)}:{self.port}"

    def ranks_of_meshes(self) -> dict[str, list[int]]:
        """Return the ranks of each mesh: meshes take their nodes in rank order."""
        dealt: dict[str, list[int]] = {}
        ranks = iter(self.ranks)
        for mesh, size in (self.meshes or {}).items():
            dealt[mesh] = [next(ranks) for _ in range(size)]
        return dealt

    def mesh_of(self, rank: int) -> str:
        """Return the mesh of `rank`; "" in a plain job."""
        for mesh, ranks in self.ranks_of_meshes().items():
            if rank in ranks:
                return mesh
        return ""


class NodeFolder(NamedTuple):
    """A node's directory: the user's part and the runner's."""

    root: Path
    # The folder that later attempts on the same machine share; None if there are none.
    shared: Path | None = None

    @property
    def workdir(self) -> Path:
        """The work directory, which contains the user's code."""
        return self.root / "workdir"

    @property
    def code(self) -> Path:
        """The generations of the code that laptops send; `workdir` then leads to one of them."""
        return self.root / "code"

    @property
    def state(self) -> Path:
        """The files of the runner itself."""
        return self.root / "state"

    @property
    def journal(self) -> Path:
        """Frames not yet acknowledged."""
        return self.state / "journal"

    @property
    def lock(self) -> Path:
        """Held for the life of the runner: the runner is alive while it is locked."""
        return self.state / "lock"

    @property
    def verdict(self) -> Path:
        """The end frame's content, once the attempt is over (rank 0)."""
        return self.state / "verdict.json"

    @property
    def goal(self) -> Path:
        """The current goal of the attempt, for a runner that follows a killed one (rank 0)."""
        return self.state / "goal"

    @property
    def runtime(self) -> Path:
        """The folder that the runner adds to the PYTHONPATH of drivers and workers."""
        return self.state / "runtime"

    @property
    def meshes(self) -> Path:
        """The driver's plan: the meshes, the addresses of their workers, and their Python."""
        return self.state / "meshes.json"

    @property
    def report(self) -> Path:
        """The driver's report: the exception or fault that ended it."""
        return self.state / "report.json"

    @property
    def tasks(self) -> Path:
        """The folder of the summaries that task contexts of this node write."""
        return self.state / "tasks"

    @property
    def admins(self) -> Path:
        """The addresses of the mesh admins, written by their process."""
        return self.state / "admins.json"

    @property
    def watch(self) -> Path:
        """A file that exists while there are meshes to watch: the driver's, or those of laptops."""
        return self.state / "watch"

    @property
    def venv(self) -> Path:
        """Names the environment that workers and driver run in, if it is not the node's own."""
        return self.state / "venv"

    @property
    def carrier(self) -> Path:
        """The name of the chosen carrier (rank 0)."""
        return self.state / "carrier"

    def script(self, name: str) -> Path:
        """Return the file from which bash reads a script of the job."""
        return self.state / f"{name}.sh"

    @property
    def certificates(self) -> Path:
        """The folder with this node's leaf, its key and the authority's certificate."""
        return self.state / "tls"


def read_config(path: Path, addresses: Sequence[str] = ()) -> AttemptConfig:
    """Read attempt.json. ConfigError contains the error.

    `addresses`, in rank order, are the nodes of a file that leaves them out (`"nodes": null`).
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    if raw.get("format") != FORMAT:
        raise ConfigError("format {!r} of {} is not {}".format(raw.get("format"), path, FORMAT))
    if raw.get("nodes") is None:
        if not addresses:
            raise ConfigError(f"{path} names no nodes: start the runner with --from-skypilot")
        raw["nodes"] = [{"rank": rank, "address": each} for rank, each in enumerate(addresses)]
    try:
        return _parse(raw, path.parent)
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{path} is not complete: {error!r}") from error


def service_id(attempt_id: int, rank: int) -> str:
    """Return a worker's service id, which is no secret: 64 bits in the base58 of Monarch."""
    digest = hashlib.sha256(f"{attempt_id}/{rank}".encode()).digest()
    number = int.from_bytes(digest[:8], "big")
    digits = ""
    while number:
        number, digit = divmod(number, 58)
        digits = _BASE58[digit] + digits
    return digits


def _parse(raw: dict[str, Any], folder: Path = Path()) -> AttemptConfig:
    config = AttemptConfig(
        attempt_id=int(raw["attempt_id"]),
        job_id=int(raw["job_id"]),
        attempt_number=int(raw["attempt_number"]),
        project=str(raw["project"]),
        job_name=str(raw["job_name"]),
        portal_url=str(raw.get("portal_url") or "").rstrip("/"),
        portal_file=raw.get("portal_file"),
        token=str(raw["token"]),
        nodes=_parse_nodes(raw["nodes"]),
        setup=raw.get("setup"),
        run=str(raw["run"]),
        envs={str(name): str(value) for name, value in (raw.get("envs") or {}).items()},
        meshes=_parse_meshes(raw.get("meshes")),
        port=int(raw.get("port", 22222)),
        hub_port=int(raw.get("hub_port", 22223)),
        node_port=int(raw.get("node_port", 22224)),
        tls=Authority(**raw["tls"]) if raw.get("tls") else None,
        python=str(raw.get("python") or "python3"),
        timeouts=Timeouts(**(raw.get("timeouts") or {})),
        linger_s=float(raw.get("linger_s", 604800)),
        uploads=_parse_uploads(raw.get("uploads") or [], folder),
        carrier=str(raw.get("carrier") or carriers.PUSH),
        torchmonarch=str(raw.get("torchmonarch") or ""),
        secrets=tuple(str(name) for name in raw.get("secrets") or ()),
        setup_always=bool(raw.get("setup_always")),
        metrics_s=max(0.0, float(raw.get("metrics_s", 10))),
        driver_token=str(raw.get("driver_token") or ""),
        gateway=bool(raw.get("gateway")),
        remarks=tuple(str(text) for text in raw.get("remarks") or ()),
        serves_parent=bool(raw.get("serves_parent")),
        repository=_parse_repository(raw.get("git")),
    )
    _check_meshes(config)
    if config.carrier not in carriers.CARRIERS:
        raise ValueError(f"there is no carrier {config.carrier!r}")
    return config


def _parse_uploads(raw: list[dict[str, Any]], folder: Path) -> tuple[Upload, ...]:
    return tuple(
        Upload(folder / each["archive"], str(each["target"]), str(each.get("sha256") or ""))
        for each in raw
    )


def _parse_repository(raw: dict[str, Any] | None) -> Repository | None:
    return Repository(str(raw["url"]), str(raw.get("ref") or "")) if raw else None


def _parse_nodes(raw: list[dict[str, Any]]) -> tuple[NodeAddress, ...]:
    nodes = tuple(sorted(NodeAddress(int(node["rank"]), str(node["address"])) for node in raw))
    if [node.rank for node in nodes] != list(range(len(nodes))):
        raise ValueError("ranks must be 0 to n-1")
    return nodes


def _parse_meshes(raw: dict[str, Any] | None) -> dict[str, int] | None:
    return {str(name): int(size) for name, size in raw.items()} if raw else None


def _check_meshes(config: AttemptConfig) -> None:
    sizes = config.meshes or {}
    if sizes and sum(sizes.values()) != len(config.nodes):
        raise ValueError(f"meshes need {sum(sizes.values())} nodes, not {len(config.nodes)}")
