"""Kubernetes: contexts of ~/.kube/config, each with a cluster and a user of its own."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import yaml

from jobs.backends.clouds.files import PrivateHome
from jobs.errors import InvalidCloudError

FIELDS = ("file",)
_FILE = ".kube/config"
_CONTEXT = {"cluster", "user", "namespace", "extensions"}
_CLUSTER = {
    "server",
    "certificate-authority-data",
    "insecure-skip-tls-verify",
    "tls-server-name",
    "proxy-url",
    "disable-compression",
    "extensions",
}
_USER = {
    "token",
    "client-certificate-data",
    "client-key-data",
    "username",
    "password",
    "as",
    "as-uid",
    "as-groups",
    "as-user-extra",
    "extensions",
}
# These run programs on the portal's host, or name files there.
_RUNS_PROGRAMS = {"exec", "auth-provider"}
_NAMES_FILES = {"tokenFile", "client-certificate", "client-key", "certificate-authority"}
_LISTS = ("clusters", "users", "contexts")
Named = dict[str, dict[str, Any]]


def add(home: PrivateHome, content: Mapping[str, str], allow_exec: bool) -> list[str]:  # noqa: FBT001
    """Store all contexts of a kubeconfig beside those that are there."""
    given = _parsed(content.get("file", ""), "The file")
    clusters, users, contexts = (_named(given, each) for each in _LISTS)
    if not contexts:
        raise InvalidCloudError("This kubeconfig has no context.")
    there = _parsed(home.read(_FILE), "The kubeconfig that is there")
    for name, context in contexts.items():
        _check(f"context {name}", context, _CONTEXT, allow_exec=False)
        cluster, user = (
            clusters.get(str(context.get("cluster"))),
            users.get(str(context.get("user"))),
        )
        if cluster is None or user is None:
            raise InvalidCloudError(f"Context {name} names a cluster or user that is not there.")
        if not str(cluster.get("server", "")).startswith(("https://", "http://")):
            raise InvalidCloudError(f"The cluster of context {name} has no server.")
        _check(f"the cluster of context {name}", cluster, _CLUSTER, allow_exec=allow_exec)
        _check(f"the user of context {name}", user, _USER, allow_exec=allow_exec)
        # Under names of its own: "admin" of another file is another admin.
        _put(there, "clusters", "cluster", name, cluster)
        _put(there, "users", "user", name, user)
        _put(there, "contexts", "context", name, {**context, "cluster": name, "user": name})
    current = given.get("current-context")
    default = current if current in contexts else next(iter(contexts))
    there["current-context"] = there.get("current-context") or default
    _store(home, there)
    return list(contexts)


def remove(home: PrivateHome, name: str) -> bool:
    """Forget a context with its cluster and its user."""
    there = _parsed(home.read(_FILE), "The kubeconfig that is there")
    if name not in _named(there, "contexts"):
        return False
    for each in _LISTS:
        there[each] = [row for row in there.get(each) or [] if row.get("name") != name]
    if there.get("current-context") == name:
        there["current-context"] = next(iter(_named(there, "contexts")), "")
    _store(home, there)
    return True


def listed(home: PrivateHome) -> list[tuple[str, str]]:
    """List the contexts, each with the address of its cluster."""
    there = _parsed(home.read(_FILE), "The kubeconfig that is there")
    clusters = _named(there, "clusters")
    return [
        (name, str(clusters.get(str(context.get("cluster")), {}).get("server", "")))
        for name, context in _named(there, "contexts").items()
    ]


def _store(home: PrivateHome, content: dict[str, Any]) -> None:
    if _named(content, "contexts"):
        home.write(_FILE, yaml.safe_dump(content, sort_keys=False))
    else:
        home.remove(_FILE)


def _parsed(text: str, what: str) -> dict[str, Any]:
    try:
        # Aliases can make a short text endless.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            raise InvalidCloudError(f"{what} has YAML aliases; write them out.")
        content = yaml.safe_load(text) if text else {"apiVersion": "v1", "kind": "Config"}
    except (yaml.YAMLError, ValueError, RecursionError):
        # Its message quotes the line, and that may hold a token.
        content = None
    if not isinstance(content, dict) or content.get("kind", "Config") != "Config":
        raise InvalidCloudError(f"{what} is not a kubeconfig.")
    return content


def _named(content: dict[str, Any], key: str) -> Named:
    """Map the names to the entries of the kubeconfig's list `key`."""
    rows = content.get(key) or []
    inner = key.removesuffix("s")
    if not isinstance(rows, list) or not all(_is_entry(row, inner) for row in rows):
        raise InvalidCloudError(f"{key} in this kubeconfig is not a list of named entries.")
    return {row["name"]: row.get(inner) or {} for row in rows}


def _is_entry(row: Any, inner: str) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("name"), str) or not row["name"]:
        return False
    return isinstance(row.get(inner) or {}, dict)


def _put(content: dict[str, Any], key: str, inner: str, name: str, value: dict[str, Any]) -> None:
    rows = [row for row in content.get(key) or [] if row.get("name") != name]
    # A copy: two contexts of one cluster would be written with an alias.
    content[key] = [*rows, {"name": name, inner: deepcopy(value)}]


def _check(what: str, entry: dict[str, Any], allowed: set[str], *, allow_exec: bool) -> None:
    for key in entry:
        if key in allowed or (allow_exec and key in _RUNS_PROGRAMS | _NAMES_FILES):
            continue
        if key in _RUNS_PROGRAMS:
            why = "it would run a program on the portal's host"
        elif key in _NAMES_FILES:
            why = "it names a file, which is not on the portal's host: put its content in"
        else:
            why = "the portal does not know it"
        raise InvalidCloudError(
            f"{str(key)[:40]!r} of {what} is refused: {why}. A service account's token works; so "
            "does `manage.py cloud add --allow-exec` on that host."
        )
