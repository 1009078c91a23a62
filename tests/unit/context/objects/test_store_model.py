"""The host's store against a model: which objects exist, and what they contain."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from monarch_client.context.objects import HostStore, ObjectNotFoundError, StoreFullError
from monarch_client.context.objects.serialization import aligned

LIMIT = 64 * 10
PROCESSES = st.sampled_from([101, 102, 103])
SIZES = st.sampled_from([1, 64, 65, 300, 500])


class StoreMachine(RuleBasedStateMachine):
    """Objects with contents of their own, processes that read them and end."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = HostStore(LIMIT, Path(self.folder.name), release_wait_s=0)
        self.number = 0
        self.contents: dict[bytes, bytes] = {}  # sealed, and not deleted
        self.copies: set[bytes] = set()
        self.unsealed: dict[bytes, int] = {}
        self.sizes: dict[bytes, int] = {}
        self.references: Counter[tuple[bytes, int]] = Counter()
        self.pins: Counter[tuple[bytes, int]] = Counter()
        self.offsets: dict[bytes, int] = {}  # of pinned objects, also after they were deleted
        self.pinned_contents: dict[bytes, bytes] = {}

    def teardown(self) -> None:
        for process in (101, 102, 103):
            self.store.process_ended(process)
        self.store.change_references(0, {each: -1 for each in self.contents if self.owned(each)})
        for each in self.copies:
            self.store.forget_copy(each)
        usage = self.store.usage()
        assert (usage.used, usage.spilled, usage.objects) == (0, 0, 0)
        self.store.close()
        self.folder.cleanup()

    def owned(self, object_id: bytes) -> bool:
        return self.references[object_id, 0] > 0

    def immovable(self) -> int:
        kept = {object_id for object_id, _ in self.pins} | set(self.unsealed)
        return sum(aligned(self.sizes[object_id]) for object_id in kept)

    @rule(process=PROCESSES, size=SIZES, is_copy=st.booleans())
    def store_whole(self, process: int, size: int, is_copy: bool) -> None:
        """Create and seal at once, as most objects are, so that the store is full."""
        self.create(process, size, is_copy)
        newest = b"%d" % self.number
        if newest in self.unsealed:
            self.finish(True, sorted(self.unsealed).index(newest))

    @rule(process=PROCESSES, size=SIZES, is_copy=st.booleans())
    def create(self, process: int, size: int, is_copy: bool) -> None:
        self.number += 1
        object_id = b"%d" % self.number
        try:
            offset = self.store.create(object_id, size, process, is_copy=is_copy)
        except StoreFullError as error:
            # Kept objects may leave no range that is large enough.
            assert error.in_use == self.immovable() and (
                error.in_use + size > LIMIT or self.pins or self.unsealed
            )
        else:
            assert offset is not None and offset % 64 == 0
            contents = bytes([self.number % 256]) * size
            self.store.arena.mapping.write(offset, [(0, memoryview(contents))])
            self.unsealed[object_id] = process
            self.sizes[object_id] = size
            self.pinned_contents[object_id] = contents
            if is_copy:
                self.copies.add(object_id)

    def has(self, object_id: bytes) -> bool:
        return self.store.contains(object_id)

    @precondition(lambda self: self.unsealed)
    @rule(seal=st.booleans(), pick=st.integers(0, 99))
    def finish(self, seal: bool, pick: int) -> None:
        object_id = sorted(self.unsealed)[pick % len(self.unsealed)]
        process = self.unsealed.pop(object_id)
        if not seal:
            self.store.abort(object_id, process)
            self.copies.discard(object_id)
            return
        self.store.seal(object_id, process)
        self.contents[object_id] = self.pinned_contents[object_id]
        if object_id not in self.copies:
            self.references[object_id, 0] += 1

    @precondition(lambda self: self.contents)
    @rule(process=PROCESSES, pick=st.integers(0, 99))
    def pin(self, process: int, pick: int) -> None:
        object_id = sorted(self.contents)[pick % len(self.contents)]
        try:
            offset, size = self.store.pin(object_id, process)
        except ObjectNotFoundError:
            assert object_id in self.copies
            self.copies.discard(object_id)
            del self.contents[object_id]
        except StoreFullError:
            assert self.pins or self.unsealed
        else:
            assert self.offsets.get(object_id, offset) == offset
            self.offsets[object_id] = offset
            self.pins[object_id, process] += 1
            assert size == self.sizes[object_id]

    @precondition(lambda self: self.pins)
    @rule(pick=st.integers(0, 99))
    def unpin(self, pick: int) -> None:
        object_id, process = sorted(self.pins)[pick % len(self.pins)]
        self.store.unpin(process, {object_id: 1})
        self.pins[object_id, process] -= 1
        self.settle()

    @rule(process=PROCESSES, pick=st.integers(0, 99))
    def refer(self, process: int, pick: int) -> None:
        named = sorted(each for each in self.contents if self.owned(each))
        if named:
            object_id = named[pick % len(named)]
            self.store.change_references(process, {object_id: 1})
            self.references[object_id, process] += 1

    @precondition(lambda self: self.references)
    @rule(pick=st.integers(0, 99))
    def drop(self, pick: int) -> None:
        object_id, process = sorted(self.references)[pick % len(self.references)]
        self.store.change_references(process, {object_id: -1})
        self.references[object_id, process] -= 1
        self.settle()

    @rule(process=PROCESSES)
    def end(self, process: int) -> None:
        self.store.process_ended(process)
        for counts in (self.references, self.pins):
            for key in [key for key in counts if key[1] == process]:
                del counts[key]
        for object_id in [each for each, of in self.unsealed.items() if of == process]:
            del self.unsealed[object_id]
            self.copies.discard(object_id)
        self.settle()

    def settle(self) -> None:
        """Forget in the model what has no reference and no pin."""
        self.references, self.pins = +self.references, +self.pins
        referred = {object_id for object_id, _ in self.references}
        for object_id in list(self.contents):
            if object_id not in referred and object_id not in self.copies:
                del self.contents[object_id]
        pinned = {object_id for object_id, _ in self.pins}
        self.offsets = {each: at for each, at in self.offsets.items() if each in pinned}

    @invariant()
    def what_is_pinned_is_intact(self) -> None:
        for object_id, offset in self.offsets.items():
            view = self.store.arena.mapping.view(offset, self.sizes[object_id])
            assert view == self.pinned_contents[object_id]

    @invariant()
    def what_is_referred_to_exists(self) -> None:
        for object_id in self.contents:
            assert self.has(object_id) or object_id in self.copies
        missing = [each for each in self.sizes if each not in self.contents]
        assert not any(self.has(each) for each in missing)


StoreMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=40)
TestStore = StoreMachine.TestCase
