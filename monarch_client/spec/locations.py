"""The notations of infrastructure and of sources of files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from monarch_client.spec.findings import Findings, SpecCode, name_of, nearest, shortened
from monarch_client.spec.nodes import Node
from monarch_client.spec.shapes import KeyName, Schema, Shape
from monarch_client.spec.variables import names_variable

# fmt: off
CLOUDS = (
    "aws", "azure", "cudo", "do", "fluidstack", "gcp", "hyperbolic", "ibm", "kubernetes",
    "lambda", "mithril", "nebius", "oci", "paperspace", "primeintellect", "runpod", "scp",
    "seeweb", "shadeform", "slurm", "ssh", "vast", "verda", "vsphere", "yotta",
)
# fmt: on
# Nothing that YAML takes for the end of a line: SkyPilot writes these words into its templates.
ONE_LINE = r"[^\t\r\n\x85\u2028\u2029]"
_INFRA = rf"\*|[A-Za-z0-9]+(?:/{ONE_LINE}+)?|\*(?:/[^/\s]+){{1,2}}"
_UPLOAD = r"upload:[0-9a-f]{64}"
# A URL without a bucket, such as s3://?/../x, is to SkyPilot's client a path of the portal's host,
# and so may be one that goes up; and on the host of its server a shell reads these, word by word.
_IN_BUCKET = r"[A-Za-z0-9_.~+=@:%,/-]*"
_BUCKET = (
    r"(?!.*/\.\.(?:/|$))"
    rf"(?:(?:s3|gs|r2|cos|oci|nebius|cw|hf)://[A-Za-z0-9][A-Za-z0-9._@-]*(?:/{_IN_BUCKET})?"
    rf"|https://[a-z0-9]+\.blob\.core\.windows\.net/{_IN_BUCKET})"
)
# Neither user, host nor path begins with a hyphen: ssh would take it for an option, such as the one
# that names a command to run.
_GIT_HOST = r"(?:[^-/@\s][^/@\s]*@)?(?:\w[\w.-]*|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?"
_SCP_HOST = r"\w[\w.-]*@\w[\w.-]*"
GIT_URL = rf"(?:https|ssh|git)://{_GIT_HOST}(?:/\S*)?|{_SCP_HOST}:(?!-)\S+"
_GIT = re.compile(
    rf"(?P<url>(?:https|ssh|git)://{_GIT_HOST}/[^@\s]+|{_SCP_HOST}:(?!-)[^@\s]+)(?:@(?P<ref>\S+))?"
)
_LONGEST_PATH = 4096


class SourceKind(Enum):
    """The kind of source of a folder or file of the job."""

    UPLOAD = "upload"
    BUCKET = "bucket"
    LOCAL = "local"
    UNKNOWN = "unknown"


def kind_of_source(text: str) -> SourceKind:
    """Return the kind of source that `text` names: a path if neither an upload nor a URL."""
    if re.fullmatch(_UPLOAD, text):
        return SourceKind.UPLOAD
    if re.fullmatch(_BUCKET, text):
        return SourceKind.BUCKET
    if "://" in text or text.startswith("upload:") or not text.strip():
        return SourceKind.UNKNOWN
    return SourceKind.LOCAL


def git_source(text: str) -> dict[str, str] | None:
    """Return the `url` and `ref` of a git URL that may end with @REF; None: it is no such URL."""
    match = _GIT.fullmatch(text.strip())
    return {name: part for name, part in match.groupdict().items() if part} if match else None


@dataclass(frozen=True)
class Source(Shape):
    """An upload or a folder of the submitter's machine; with `buckets` also a bucket's URL."""

    buckets: bool = False
    uploads: bool = True
    takes: ClassVar[tuple[type, ...]] = (str,)

    @property
    def wants(self) -> str:
        kinds = ["upload:<sha256>"] * self.uploads + ["a folder here"] * self.uploads
        return " or ".join(kinds + ["the URL of a bucket (s3://..., gs://...)"] * self.buckets)

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1, "maxLength": _LONGEST_PATH}

    def _read(self, node: Node, path: str, findings: Findings) -> Any:
        kind = kind_of_source(node.value)
        allowed = {SourceKind.UPLOAD, SourceKind.LOCAL} if self.uploads else set()
        allowed |= {SourceKind.BUCKET} if self.buckets else set()
        if kind not in allowed and (message := self._true_reason(kind, node.value, path)):
            code = SpecCode.LOCAL_PATH if kind is SourceKind.LOCAL else SpecCode.BAD_VALUE
            findings.add(path, code, message, line=node.line)
        elif kind not in allowed or len(node.value) > _LONGEST_PATH:
            findings.bad_value(node, path, self.wants)
        return node.value

    def _true_reason(self, kind: SourceKind, text: str, path: str) -> str:
        """Say why what SkyPilot would take is not taken, or how to write it, or nothing."""
        if self.uploads and not self.buckets and (found := git_source(text)):
            keys = ", ".join(f"{key}: {value}" for key, value in found.items())
            return f"Write the git repository as a mapping: {name_of(path)}: {{{keys}}}."
        if names_variable(text) and kind is SourceKind.UNKNOWN:
            return (
                f"{name_of(path)} names a variable that envs does not set: set it there, or write "
                "the URL out."
            )
        if not self.uploads and kind in {SourceKind.LOCAL, SourceKind.UPLOAD}:
            return (
                f"{name_of(path)} must be the URL of a bucket: the portal fills no bucket with "
                "your folder. Copy the folder into a bucket, or name it itself in file_mounts, "
                "such as /data: ./data."
            )
        return ""


@dataclass(frozen=True)
class Infra(Shape):
    """SkyPilot's infra: a cloud, Kubernetes context, Slurm cluster or ssh pool, and where in it."""

    takes: ClassVar[tuple[type, ...]] = (str,)

    @property
    def wants(self) -> str:
        return "'local' or cloud[/region[/zone]], such as slurm/main or aws/us-east-1"

    def schema(self) -> Schema:
        return {"type": "string", "pattern": f"^(?:{_INFRA})$"}

    def _read(self, node: Node, path: str, findings: Findings) -> Any:
        if not re.fullmatch(_INFRA, node.value):
            findings.bad_value(node, path, self.wants)
        else:
            _check_cloud(node, path, findings, known=("local", "k8s", "*", *CLOUDS))
        return node.value


@dataclass(frozen=True)
class Cloud(Shape):
    """The name of a cloud alone."""

    takes: ClassVar[tuple[type, ...]] = (str,)

    @property
    def wants(self) -> str:
        return "the name of a cloud that SkyPilot knows"

    def schema(self) -> Schema:
        return {"type": "string", "pattern": "^[A-Za-z0-9]+$"}

    def _read(self, node: Node, path: str, findings: Findings) -> Any:
        _check_cloud(node, path, findings, known=("k8s", *CLOUDS))
        return node.value


def _check_cloud(node: Node, path: str, findings: Findings, *, known: tuple[str, ...]) -> None:
    cloud = node.value.partition("/")[0].lower()
    guess = nearest(cloud, known)
    # A plugin may have brought a cloud of its own: what is no misspelling SkyPilot's server judges.
    if cloud in known or guess is None:
        return
    where = f"{name_of(path)} names {shortened(cloud)!r}, which SkyPilot does not know."
    message = f"{where} Did you mean {guess}?"
    findings.add(path, SpecCode.BAD_VALUE, message, line=node.line, suggestion=guess)


_OF_RUNNERS = re.compile(r"~/+(?:\./+)*\.mportal(?:/|$)")


def _target_complaint(target: str) -> str | None:
    if _OF_RUNNERS.match(target):
        return "~/.mportal belongs to the job's runner: choose another path."
    if ".." in target.split("/"):
        return "a path on the nodes must not go up with '..'."
    if "$" in target:
        # SkyPilot would put values there, of secrets too, before it reads where things come from.
        return "a path on the nodes has no $, and envs sets no variable of that name."
    return None


TARGET = KeyName("a path on the nodes", rf"\S(?:.{{0,{_LONGEST_PATH - 2}}}\S)?", _target_complaint)
