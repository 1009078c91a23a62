"""How often Python looks for garbage in cycles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Objects made between two looks. A thousand live streams, or a pass over a deep queue, make as many
# in a moment as Python's own number (700), and looking through all of theirs takes long.
_OBJECTS = 20_000


def look_seldom() -> None:
    """For a process that holds many objects at once."""
    gc.set_threshold(_OBJECTS)


@contextmanager
def look_later() -> Iterator[None]:
    """Not in this block, which makes very many objects that stay until it is over.

    All threads of the process do without looks meanwhile: it must not take long.
    """
    looks = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looks:
            gc.enable()
