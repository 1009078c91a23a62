"""Find the sockets that listen on a port, in the kernel's tables. Linux only."""

from __future__ import annotations

import ipaddress
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Iterator, Union

    _Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTEN = "0A"
_GROUP = 8


class ListeningSocket(NamedTuple):
    """A listening socket: its owner's user id, and the inode that links it to processes."""

    uid: int
    inode: str


def sockets_listening_at(address: str, port: int) -> list[ListeningSocket]:
    """Return the sockets that may accept a connection to `address`: on it, or on all addresses.

    Empty if the kernel has no such tables.
    """
    wanted = _read(address)
    found = []
    for fields in _rows():
        local, local_port = fields[1].split(":")
        if fields[3] != _LISTEN or int(local_port, 16) != port:
            continue
        bound = _address(local)
        if bound == wanted or bound.is_unspecified:
            found.append(ListeningSocket(int(fields[7]), fields[9]))
    return found


def is_same_address(one: str, other: str) -> bool:
    """Whether both texts are the same IP address in any notation."""
    try:
        return _read(one) == _read(other)
    except ValueError:
        return False


def _read(text: str) -> _Address:
    """Read an IP address as Python's sockets give it, with or without a zone."""
    return _unwrapped(ipaddress.ip_address(text.partition("%")[0]))


def _rows() -> Iterator[list[str]]:
    for table in _TABLES:
        try:
            text = table.read_text(encoding="ascii")
        except OSError:
            continue
        for line in text.splitlines()[1:]:
            yield line.split()


def _address(text: str) -> _Address:
    """Read an address: 32 bits at a time, each as a number of this machine's byte order."""
    groups = [text[at : at + _GROUP] for at in range(0, len(text), _GROUP)]
    packed = b"".join(int(group, 16).to_bytes(4, sys.byteorder) for group in groups)
    return _unwrapped(ipaddress.ip_address(packed))


def _unwrapped(address: _Address) -> _Address:
    """Return the IPv4 address that an IPv6 one wraps, else the same."""
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address
