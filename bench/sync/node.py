"""The streams of one node, as its runner's process serves them: `python -m bench.sync.node ...`.

Without the head's copy for the portal, which follows a sync and would disturb the next one here.
"""

from __future__ import annotations

import asyncio
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from monarch_client.runner.base.config import NodeFolder
from monarch_client.runner.code.generations import Generations
from monarch_client.runner.code_sync.rank_code import RankCode
from monarch_client.runner.code_sync.receiving import CodeService, Kept
from monarch_client.runner.node_streams.dialing import Dialer
from monarch_client.runner.node_streams.open_sessions import OpenSessions
from monarch_client.runner.node_streams.server import NodeServer


async def _keep(_tree: str, _waits: bool) -> Kept:  # noqa: FBT001 - as the service calls it
    """Keep nothing: there is no portal."""
    return Kept("")


async def serve(rank: int, addresses: list[str], port: int, root: Path, certificates: Path) -> None:
    """Serve until standard input ends."""
    folder = NodeFolder(root)
    folder.workdir.mkdir(parents=True)
    generations = Generations(folder.code, folder.workdir)
    generations.adopt(generations.record())
    thread = ThreadPoolExecutor(1)
    dial = Dialer(addresses, port, certificates).dial
    code = RankCode(rank, len(addresses), generations, dial, thread)
    switch = code.switches.switch
    make_way = code.switches.make_way
    laptops = CodeService(generations.trees, generations.store, thread, switch, _keep, make_way)
    server = NodeServer(
        {"blocks": code.blocks.serve, "switch": code.switches.serve, "code": laptops.serve},
        OpenSessions({1: "sync"}),
    )
    await server.listen(addresses[rank], port, certificates)
    print("ready", flush=True)
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, sys.stdin.read)
    os._exit(0)


if __name__ == "__main__":
    number, names, node_port, root_folder, certificate_folder = sys.argv[1:]
    asyncio.run(
        serve(
            int(number),
            names.split(","),
            int(node_port),
            Path(root_folder),
            Path(certificate_folder),
        )
    )
