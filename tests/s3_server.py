"""A server of S3 from a package, moto, as a process of its own on loopback."""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
from typing import Any
from uuid import uuid4

import boto3
import httpx

from tests.waiting import eventually

KEYS = {"access_key": "planted-access", "secret_key": "planted-secret"}
_numbers = itertools.count(1)


def closed_port() -> int:
    """Return a loopback port on which no process listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


class S3Server:
    """Started by `start`, ended by `close`. It keeps objects in its memory."""

    def __init__(self) -> None:
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; returns when it answers."""
        # Another process may take the port first: then there is a next one.
        for _ in range(5):
            port = closed_port()
            self.url = f"http://127.0.0.1:{port}"
            self._process = subprocess.Popen(
                [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": os.environ["PATH"]},
            )
            eventually(lambda: self._answers() or self._has_ended(), timeout_s=90)
            if self._answers() and not self._has_ended():
                return
            self.close()
        raise AssertionError("the S3 server does not start")

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def bucket(self) -> Bucket:
        """Create a bucket."""
        return Bucket(self, f"logs-{next(_numbers)}-{uuid4().hex[:8]}")

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/moto-api/data.json", timeout=5).is_success
        except httpx.TransportError:
            return False

    def _has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None


class Bucket:
    """One bucket, as the owner of its keys sees it."""

    def __init__(self, server: S3Server, name: str) -> None:
        self.server = server
        self.name = name
        self.prefix = "some/where"
        self.client: Any = boto3.session.Session().client(
            "s3",
            endpoint_url=server.url,
            region_name="us-east-1",
            aws_access_key_id=KEYS["access_key"],
            aws_secret_access_key=KEYS["secret_key"],
        )
        self.client.create_bucket(Bucket=name)

    @property
    def storage(self) -> dict[str, Any]:
        """The entry of STORAGES that names it."""
        options = {"bucket": self.name, "prefix": self.prefix, "endpoint": self.server.url, **KEYS}
        return {"BACKEND": "jobs.logs.s3_storage.S3Storage", "OPTIONS": options}

    @property
    def environment(self) -> dict[str, str]:
        """The variables that name it."""
        return {
            "MPORTAL_S3": f"s3://{self.name}/{self.prefix}",
            "MPORTAL_S3_ENDPOINT": self.server.url,
            "MPORTAL_S3_ACCESS_KEY": KEYS["access_key"],
            "MPORTAL_S3_SECRET_KEY": KEYS["secret_key"],
        }

    def names(self) -> list[str]:
        """List the keys of all objects, in order."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
        return [each["Key"] for page in pages for each in page.get("Contents", ())]

    def content(self, key: str) -> bytes:
        """Return what an object holds."""
        body: bytes = self.client.get_object(Bucket=self.name, Key=key)["Body"].read()
        return body

    def put(self, key: str, content: bytes = b"somebody else's") -> None:
        """Have an object there that the portal has not written."""
        self.client.put_object(Bucket=self.name, Key=key, Body=content)
