"""The frequency with which Python looks for garbage in cycles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Objects made between two looks. A thousand live streams, or a pass over a deep queue, make as many
# in a moment as Python's own number (700), and looking through all of theirs takes long.
_OBJECTS = 20_000


def look_seldom() -> None:
    """Collect garbage less often, in a process that holds many objects at once."""
    gc.set_threshold(_OBJECTS)


@contextmanager
def look_later() -> Iterator[None]:
    """Disable garbage collection in a block whose very many objects stay until its end.

    It is disabled in all threads of the process meanwhile: the block must be short.
    """
    looks = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looks:
            gc.enable()
