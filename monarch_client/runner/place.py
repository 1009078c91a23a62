"""The shared objects of a runner on one node, which each of its parts uses."""

from __future__ import annotations

from typing import NamedTuple

from monarch_client.runner.base.config import AttemptConfig, NodeFolder
from monarch_client.runner.base.loop import MainLoop
from monarch_client.runner.base.processes import Children
from monarch_client.runner.journal.recorder import Recorder
from monarch_client.runner.journal.samples import Samples


class Place(NamedTuple):
    """A node of an attempt: its configuration, files, main loop, processes and recorder."""

    config: AttemptConfig
    rank: int
    folder: NodeFolder
    loop: MainLoop
    children: Children
    recorder: Recorder
    samples: Samples
