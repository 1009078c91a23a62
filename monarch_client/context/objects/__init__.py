"""The object store of task contexts: values in shared memory, read without a copy."""

from __future__ import annotations

from monarch_client.context.objects.client import StoreClient
from monarch_client.context.objects.errors import (
    ObjectNotFoundError,
    ObjectStoreError,
    ObjectUnreachableError,
    StoreFullError,
)
from monarch_client.context.objects.host_objects import HostObjects
from monarch_client.context.objects.host_store import HostStore, StoreUsage
from monarch_client.context.objects.ledger import OWNER
from monarch_client.context.objects.serialization import (
    Serialized,
    deserialize,
    deserialize_object,
    serialize,
)
from monarch_client.context.objects.server import StoreServer

__all__ = [
    "OWNER",
    "HostObjects",
    "HostStore",
    "ObjectNotFoundError",
    "ObjectStoreError",
    "ObjectUnreachableError",
    "Serialized",
    "StoreClient",
    "StoreFullError",
    "StoreServer",
    "StoreUsage",
    "deserialize",
    "deserialize_object",
    "serialize",
]
