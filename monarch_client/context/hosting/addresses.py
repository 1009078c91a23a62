"""The address at which Monarch reaches this process."""

from __future__ import annotations

_LOOPBACK = "127.0.0.1"
_NETWORKS = frozenset({"tcp", "tls", "metatls"})


def own_host() -> str:
    """Return the host in this process's address of Monarch: that of all its hosts for a mesh.

    A mesh without a network has one machine.
    """
    from monarch.actor import context  # noqa: PLC0415 - for contexts on hosts alone

    return host_of(str(context().actor_instance.actor_id.addr))


def host_of(address: str) -> str:
    """Return the host of an address of Monarch, such as `tls:10.0.0.5:26600`."""
    scheme, _, rest = address.partition(":")
    host = rest.removeprefix("//").rpartition(":")[0].strip("[]")
    return host if scheme in _NETWORKS and host else _LOOPBACK
