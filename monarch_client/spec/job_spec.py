"""JobSpec: a checked job specification. The one parser for REST, page, CLI and Python."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from monarch_client.errors import SpecError
from monarch_client.spec.envs import with_envs
from monarch_client.spec.findings import Findings, SpecCode, join
from monarch_client.spec.from_object import read_object
from monarch_client.spec.from_yaml import read_yaml
from monarch_client.spec.locations import SourceKind, kind_of_source
from monarch_client.spec.portal_block import PortalBlock
from monarch_client.spec.portal_keys import DEFAULT_PORT, PARENTS_DRIVER, port_of_child
from monarch_client.spec.spans import Spans
from monarch_client.spec.task_keys import TASK
from monarch_client.spec.variables import with_variables

# Keys that are passed on to SkyPilot as they are, and left out where they are not given.
_PASSED_ON = ("volumes", "config", "event_callback")


@dataclass(frozen=True)
class JobSpec:
    """A checked specification. `lines` has the line of each key, if it was parsed from text."""

    name: str
    run: str
    num_nodes: int = 1
    setup: str | None = None
    workdir: str | dict[str, str] | None = None
    envs: dict[str, str] = field(default_factory=dict)
    # Environment variable -> name of a secret of the project.
    secrets: dict[str, str] = field(default_factory=dict)
    resources: dict[str, Any] = field(default_factory=dict)
    file_mounts: dict[str, str | dict[str, Any]] = field(default_factory=dict)
    portal: PortalBlock = field(default_factory=PortalBlock)
    passed_on: dict[str, Any] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    spans: Spans = field(default_factory=Spans, compare=False, repr=False)

    @classmethod
    def parse(
        cls,
        source: str | dict[str, Any],
        *,
        admin: bool = False,
        for_server: bool = False,
        envs: Mapping[str, str] = MappingProxyType({}),
    ) -> JobSpec:
        """Check YAML text or a JSON object; InvalidSpecErrors carries everything wrong with it.

        `envs` take the place of the variables that `source` sets, or leaves without a value.
        `admin` accepts the keys of administrators. `for_server` also reports what only a client
        may write, as `server_errors` does, together with the rest.
        """
        findings = Findings(admin=admin)
        if isinstance(source, str):
            node = read_yaml(source, findings)
        else:
            node = read_object(source, findings)
        node = with_variables(with_envs(node, envs), findings)
        values = TASK.read(node, "", findings)
        if for_server and isinstance(values, dict):
            _refuse_local_sources(values, findings)
        findings.raise_if_any()
        return cls._of(values, findings.lines, findings.spans)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> JobSpec:
        """Make it from the result of `to_dict`, unchecked: an older version may have taken it."""
        return cls._of(deepcopy(content), {}, Spans())

    @classmethod
    def _of(cls, values: dict[str, Any], lines: Mapping[str, int], spans: Spans) -> JobSpec:
        return cls(
            name=values["name"],
            run=values.get("run", ""),
            num_nodes=values["num_nodes"],
            setup=values.get("setup"),
            workdir=values.get("workdir"),
            envs=values.get("envs", {}),
            secrets=values.get("secrets", {}),
            resources=values.get("resources", {}),
            file_mounts=values.get("file_mounts", {}),
            portal=PortalBlock.from_dict(values.get("portal", {})),
            passed_on={key: values[key] for key in _PASSED_ON if key in values},
            lines=lines,
            spans=spans,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the specification in normal form, itself a valid source for `parse`.

        `name num_nodes run envs resources file_mounts portal` are always there; `setup workdir
        secrets volumes config event_callback` only where they were given.
        """
        optional = {
            "setup": self.setup,
            "workdir": self.workdir,
            "secrets": self.secrets or None,
            **self.passed_on,
        }
        content = {
            "name": self.name,
            "num_nodes": self.num_nodes,
            "run": self.run,
            **{key: value for key, value in optional.items() if value is not None},
            "envs": self.envs,
            "resources": self.resources,
            "file_mounts": self.file_mounts,
            "portal": self.portal.to_dict(),
        }
        return deepcopy(content)

    @property
    def config(self) -> dict[str, Any]:
        """SkyPilot's settings for this task, empty as a rule."""
        return dict(self.passed_on.get("config", {}))

    @property
    def is_monarch(self) -> bool:
        """Whether it has meshes, so that `run` is a driver."""
        return bool(self.portal.meshes)

    @property
    def waits_for_laptops(self) -> bool:
        """Whether it is a Monarch job without a driver, whose workers wait for laptops."""
        return self.is_monarch and self.portal.gateway and not self.run.strip()

    @property
    def serves_parent(self) -> bool:
        """Whether it has no driver, because its workers serve that of the job that submits it."""
        return self.portal.driver == PARENTS_DRIVER

    def completed_from(self, parent: JobSpec, earlier: int = 0) -> JobSpec:
        """Return the specification of a child that serves the driver of `parent`.

        Its workers need the code, the environment and the network of the parent's: what the child
        does not name is taken from there. `earlier` counts the parent's children before it.
        """
        infra = {key: parent.resources[key] for key in ("infra",) if key in parent.resources}
        has_places = any(key in self.resources for key in ("any_of", "ordered"))
        resources = self.resources if has_places else {**infra, **self.resources}
        block = self.portal
        if block.queue == PortalBlock().queue:
            block = replace(block, queue=parent.portal.queue)
        if block.port == DEFAULT_PORT:
            # A node of several jobs, as Slurm has them, may run the parent and its children.
            block = replace(block, port=port_of_child(parent.portal.port, earlier))
        volumes = {key: parent.passed_on[key] for key in ("volumes",) if key in parent.passed_on}
        return replace(
            self,
            setup=parent.setup if self.setup is None else self.setup,
            workdir=parent.workdir if self.workdir is None else self.workdir,
            envs={**parent.envs, **self.envs},
            secrets={**parent.secrets, **self.secrets},
            resources=resources if self.resources else parent.resources,
            file_mounts={**parent.file_mounts, **self.file_mounts},
            portal=block,
            passed_on={**volumes, **self.passed_on},
        )

    @property
    def kind(self) -> str:
        """Either "monarch" or "plain"."""
        return "monarch" if self.is_monarch else "plain"

    def line_of(self, path: str) -> int | None:
        """Return the line of the key `path`, or of the nearest one around it."""
        return self._new_findings().line_of(path)

    def error_at(self, path: str, code: SpecCode, message: str) -> SpecError:
        """Return an error at `path`, with the line of this key, or of the nearest one around it."""
        findings = self._new_findings()
        findings.add(path, code, message)
        return findings.errors[0]

    def server_errors(self) -> list[SpecError]:
        """Return errors that only a portal reports, such as for a path on the client's machine."""
        findings = self._new_findings()
        _refuse_local_sources(self._copied, findings)
        return findings.errors

    def _new_findings(self) -> Findings:
        findings = Findings()
        findings.lines, findings.spans = dict(self.lines), self.spans
        return findings

    def upload_targets(self) -> list[tuple[str, str]]:
        """Return (target, reference) of each upload used; the workdir's target is "workdir"."""
        return [
            (target, source)
            for target, (_, source) in _sources(self._copied).items()
            if kind_of_source(source) is SourceKind.UPLOAD
        ]

    def upload_keys(self) -> dict[str, str]:
        """Return the reference of every upload used, by the path of the key that names it."""
        return {
            path: source
            for path, source in _sources(self._copied).values()
            if kind_of_source(source) is SourceKind.UPLOAD
        }

    def references(self) -> list[str]:
        """Return the uploads used, each once."""
        return sorted(set(self.upload_keys().values()))

    def local_sources(self) -> dict[str, str]:
        """Return folders of the submitter's machine by the path of the key that names them."""
        return {
            path: source
            for path, source in _sources(self._copied).values()
            if kind_of_source(source) is SourceKind.LOCAL
        }

    @property
    def _copied(self) -> dict[str, Any]:
        """The keys that name what is copied onto the nodes."""
        return {"workdir": self.workdir, "file_mounts": self.file_mounts}


def _sources(values: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return {target: (path of the key, source)} of everything that is copied onto the nodes."""
    found: dict[str, tuple[str, str]] = {}
    if isinstance(workdir := values.get("workdir"), str):
        found["workdir"] = ("workdir", workdir)
    mounts = values.get("file_mounts")
    for target, source in mounts.items() if isinstance(mounts, dict) else ():
        if isinstance(source, str):
            found[target] = (join("file_mounts", target), source)
    return found


def _refuse_local_sources(values: dict[str, Any], findings: Findings) -> None:
    for path, source in _sources(values).values():
        if kind_of_source(source) is SourceKind.LOCAL:
            message = (
                f"{path} is a path of your own machine, which the portal cannot read: send the "
                "folder as an upload (upload:<sha256>). `mportal submit` does it for you."
            )
            findings.add(path, SpecCode.LOCAL_PATH, message)
