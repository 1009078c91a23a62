"""A broker that drops, doubles, delays and reorders messages: kombu's Redis transport, misled.

What it does now is read from a file that the test writes; in which order is decided by a seed and
the process's name. `fleet_settings` makes it known to kombu.
"""

from __future__ import annotations

import json
import os
import random
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kombu.transport import redis as kombu_redis
from kombu.utils.json import dumps

VARIABLE = "FLEET_UNRULY"
LONGEST_DELAY_S = 3.0


@dataclass(frozen=True, slots=True)
class Rules:
    """The rates, from 0 to 1, at which messages meet each fate."""

    drop: float = 0.0
    double: float = 0.0
    delay: float = 0.0
    reorder: float = 0.0

    def write(self, file: Path) -> None:
        """Write the rules; every process follows them from now on."""
        draft = file.with_suffix(".new")
        draft.write_text(json.dumps(asdict(self)))
        draft.replace(file)


def _rules() -> Rules:
    return Rules(**json.loads(Path(os.environ[VARIABLE]).read_text()))


_random = random.Random(os.environ.get("FLEET_SEED", "") + os.environ.get("FLEET_MEMBER", ""))


class Channel(kombu_redis.Channel):
    """A channel that sends what the rules leave of a message."""

    def _put(self, queue: str, message: dict[str, Any], **_: Any) -> None:
        rules = _rules()
        if _random.random() < rules.drop:
            return
        key = self._q_for_pri(queue, self._get_message_priority(message, reverse=False))
        for _copy in range(2 if _random.random() < rules.double else 1):
            # Messages are taken from the right: one that is put there overtakes all others.
            overtakes = _random.random() < rules.reorder
            if _random.random() < rules.delay:
                delay_s = _random.uniform(0, LONGEST_DELAY_S)
                arguments = (key, dumps(message), overtakes)
                threading.Timer(delay_s, self._push, arguments).start()
            else:
                self._push(key, dumps(message), overtakes)

    def _push(self, key: str, text: str, overtakes: bool) -> None:
        with self.conn_or_acquire() as client:
            (client.rpush if overtakes else client.lpush)(key, text)


class Transport(kombu_redis.Transport):
    """Kombu's Redis transport over such channels."""

    Channel = Channel
