"""Where a runner stands: what every part of it needs to know, and to reach, on one node."""

from __future__ import annotations

from typing import NamedTuple

from monarch_client.runner.base.config import AttemptConfig, NodeFolder
from monarch_client.runner.base.loop import MainLoop
from monarch_client.runner.base.processes import Children
from monarch_client.runner.journal.recorder import Recorder
from monarch_client.runner.journal.samples import Samples


class Place(NamedTuple):
    """One node of one attempt, with what its runner is made of."""

    config: AttemptConfig
    rank: int
    folder: NodeFolder
    loop: MainLoop
    children: Children
    recorder: Recorder
    samples: Samples
