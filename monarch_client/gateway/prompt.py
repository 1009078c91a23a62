"""The Python prompt of `mportal attach` and `mportal dev`: `python -i -m` runs this first."""

from __future__ import annotations

import sys

from monarch_client.gateway.connecting import connect

connection = connect()
meshes = connection.meshes
sys.stdout.write(f"`meshes` has: {', '.join(meshes)}\n")
