"""Drive a job's meshes from a program without torchmonarch, with the names that Monarch uses."""

from monarch_client.gateway.proxies.connecting import MeshesProxy, connect_proxies
from monarch_client.gateway.proxies.errors import (
    ProxyError,
    RemoteError,
    ResultExpiredError,
)
from monarch_client.gateway.proxies.futures import FutureProxy
from monarch_client.gateway.proxies.meshes import (
    ActorMeshProxy,
    EndpointProxy,
    HostMeshProxy,
    MeshProxy,
    ProcMeshProxy,
)
from monarch_client.gateway.proxies.values import Extent, Point, ValueMeshProxy
from monarch_client.runner.scripts.mportal_proxies.arrays import RawArray
from monarch_client.runner.scripts.mportal_proxies.classes import Record
from monarch_client.runner.scripts.mportal_proxies.codec import CodecError

__all__ = [
    "ActorMeshProxy",
    "CodecError",
    "EndpointProxy",
    "Extent",
    "FutureProxy",
    "HostMeshProxy",
    "MeshProxy",
    "MeshesProxy",
    "Point",
    "ProcMeshProxy",
    "ProxyError",
    "RawArray",
    "Record",
    "RemoteError",
    "ResultExpiredError",
    "ValueMeshProxy",
    "connect_proxies",
]
