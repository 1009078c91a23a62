"""The frequency with which Python looks for garbage in cycles."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Objects made between two looks. A thousand live streams, or a pass over a deep queue, make as many
# in a moment as Python's own number (700), and looking through all of theirs takes long.
_OBJECTS = 20_000


def look_seldom() -> None:
    """Collect garbage less often, in a process that holds many objects at once.

    Objects that exist now are not looked at again: a look at all modules takes 0.1 s, in which no
    request is answered. Call it after the imports.
    """
    gc.set_threshold(_OBJECTS)
    gc.collect()
    gc.freeze()


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
