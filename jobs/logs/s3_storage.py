"""Blobs as objects of an S3 bucket. Only loaded where one is named: boto3 takes time and memory.

One client for all threads of a process, short time-outs, and whole objects: a chunk is small.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import datetime
from typing import IO, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files.base import ContentFile
from django.core.files.storage import Storage

_NOT_THERE = frozenset({"404", "NoSuchKey", "NotFound"})
# What one request may take before its reader is sent away with a time to retry.
_CONNECT_S, _READ_S, _TRIES = 3, 10, 2
# As many objects as one request may delete.
_DELETED_AT_ONCE = 1000


class S3Storage(Storage):
    """The objects below `prefix` in `bucket`, under the names that callers give them."""

    # What a server that is away, or refuses, raises.
    failures: tuple[type[Exception], ...] = (BotoCoreError, ClientError)

    def __init__(self, bucket: str, prefix: str = "", **server: str) -> None:
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._server = server
        self._lock = threading.Lock()
        self._made: Any = None

    @property
    def _client(self) -> Any:
        """Made at the first use, so that it belongs to the process that uses it."""
        with self._lock:
            if self._made is None:
                self._made = _client(**self._server)
            return self._made

    def get_available_name(self, name: str, max_length: int | None = None) -> str:
        """Return the name itself: none is used twice, which saves a request."""
        return name

    def _save(self, name: str, content: Any) -> str:
        self._client.put_object(
            Bucket=self._bucket,
            Key=self._prefix + name,
            Body=content.read(),
            ContentType="application/zstd",
        )
        return name

    def _open(self, name: str, mode: str = "rb") -> IO[bytes]:
        try:
            answer = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)
        except ClientError as error:
            if _code(error) in _NOT_THERE:
                raise FileNotFoundError(name) from error
            raise
        file: Any = ContentFile(answer["Body"].read(), name=name)
        return file  # type: ignore[no-any-return]

    def delete(self, name: str) -> None:
        """Remove one object; silent if it does not exist."""
        self._client.delete_object(Bucket=self._bucket, Key=self._prefix + name)

    def delete_many(self, names: list[str]) -> None:
        """Remove objects, a thousand with each request."""
        for begin in range(0, len(names), _DELETED_AT_ONCE):
            keys = [{"Key": self._prefix + name} for name in names[begin:][:_DELETED_AT_ONCE]]
            answer = self._client.delete_objects(
                Bucket=self._bucket, Delete={"Objects": keys, "Quiet": True}
            )
            for refused in answer.get("Errors", ())[:1]:
                raise ClientError({"Error": refused}, "DeleteObjects")

    def exists(self, name: str) -> bool:
        """Whether there is such an object."""
        return self._head(name) is not None

    def get_modified_time(self, name: str) -> datetime:
        """Return when it was written, by the server's clock."""
        head = self._head(name)
        if head is None:
            raise FileNotFoundError(name)
        moment: datetime = head["LastModified"]
        return moment

    def listdir(self, path: str) -> tuple[list[str], list[str]]:
        """List the names of folders and of objects in a folder; empty lists if there is none."""
        place = f"{self._prefix}{path.strip('/')}/"
        folders: list[str] = []
        objects: list[str] = []
        for page in self._pages(place):
            folders += [each["Prefix"][len(place) : -1] for each in page.get("CommonPrefixes", ())]
            objects += [each["Key"][len(place) :] for each in page.get("Contents", ())]
        return folders, objects

    def _pages(self, place: str) -> Iterator[dict[str, Any]]:
        pages = self._client.get_paginator("list_objects_v2")
        yield from pages.paginate(Bucket=self._bucket, Prefix=place, Delimiter="/")

    def _head(self, name: str) -> dict[str, Any] | None:
        try:
            head: dict[str, Any] = self._client.head_object(
                Bucket=self._bucket, Key=self._prefix + name
            )
        except ClientError as error:
            if _code(error) in _NOT_THERE:
                return None
            raise
        return head


def _client(
    endpoint: str = "", region: str = "", access_key: str = "", secret_key: str = ""
) -> Any:
    """Make a client. Without keys boto3 looks for them where AWS's own tools do."""
    own_server: dict[str, Any] = {"addressing_style": "path"} if endpoint else {}
    config = Config(
        connect_timeout=_CONNECT_S,
        read_timeout=_READ_S,
        retries={"total_max_attempts": _TRIES, "mode": "standard"},
        max_pool_connections=20,
        s3=own_server,
        # Checksums that not every server knows; what arrives is compared by the portal itself.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    return boto3.session.Session().client(
        "s3",
        endpoint_url=endpoint or None,
        region_name=region or "us-east-1",
        aws_access_key_id=access_key or None,
        aws_secret_access_key=secret_key or None,
        config=config,
    )


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
