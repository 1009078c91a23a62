"""Shapes of meshes: labeled dimensions, and how slices, splits and flattening change them.

The rules and errors are those of Monarch's meshes, which the client does not have.
"""

from __future__ import annotations

import itertools
import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Mapping, Sequence


@dataclass(frozen=True)
class Shape:
    """A view of ranks: the sizes of labeled dimensions, and the steps between ranks."""

    labels: tuple[str, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @classmethod
    def dense(cls, sizes: Mapping[str, int]) -> Shape:
        """Return the shape of all ranks from 0, the last dimension being the fastest."""
        return cls(tuple(sizes), tuple(sizes.values()), _dense_strides(tuple(sizes.values())))

    def __len__(self) -> int:
        """Return the number of ranks."""
        return math.prod(self.sizes)

    def as_dict(self) -> dict[str, int]:
        """Return the size of each dimension."""
        return dict(zip(self.labels, self.sizes))

    def ranks(self) -> list[int]:
        """List the ranks in the order of the coordinates."""
        ranks = [self.offset]
        for size, stride in zip(self.sizes, self.strides):
            ranks = [rank + step * stride for rank in ranks for step in range(size)]
        return ranks

    def rank_at(self, coordinates: Mapping[str, int]) -> int:
        """Return the rank at the coordinates. KeyError, IndexError: there is none."""
        unknown = [label for label in coordinates if label not in self.labels]
        if unknown:
            raise KeyError(f"item has extra dimensions: {unknown}")
        rank = self.offset
        for label, size, stride in zip(self.labels, self.sizes, self.strides):
            position = operator.index(coordinates[label])
            if not 0 <= position < size:
                raise IndexError(f"{label}={position} is out of range for size {size}")
            rank += position * stride
        return rank

    def slice(self, selectors: Mapping[str, Any]) -> Shape:
        """Return the selected part; an integer removes its dimension."""
        shape = self
        for label, selector in selectors.items():
            if label not in shape.labels:
                raise TypeError(f"Shape does not have dimension labeled {label!r}")
            shape = shape._select(shape.labels.index(label), selector)
        return shape

    def _select(self, axis: int, selector: Any) -> Shape:
        size, stride = self.sizes[axis], self.strides[axis]
        if not isinstance(selector, slice):
            position = operator.index(selector)
            if not 0 <= position < size:
                raise IndexError("index out of range")
            return Shape(
                self.labels[:axis] + self.labels[axis + 1 :],
                self.sizes[:axis] + self.sizes[axis + 1 :],
                self.strides[:axis] + self.strides[axis + 1 :],
                self.offset + position * stride,
            )
        chosen = range(size)[selector]
        if not chosen or chosen.step < 0:
            raise ValueError(f"empty range {chosen.start}:{chosen.stop}:{chosen.step}")
        return Shape(
            self.labels,
            (*self.sizes[:axis], len(chosen), *self.sizes[axis + 1 :]),
            (*self.strides[:axis], stride * chosen.step, *self.strides[axis + 1 :]),
            self.offset + chosen.start * stride,
        )

    def flatten(self, name: str) -> Shape:
        """Return the same ranks in one dimension. ValueError: they are not contiguous."""
        dense = _dense_strides(self.sizes)
        if dense != self.strides:
            raise ValueError(
                f"cannot flatten sparse mesh: its strides are {list(self.strides)}, "
                f"and {list(dense)} would be dense"
            )
        return Shape((name,), (len(self),), (1,), self.offset)

    def split(self, given: Mapping[str, Any]) -> Shape:
        """Return the same ranks with some dimensions split into several."""
        splits, known = self._parse_split(given)
        labels: list[str] = []
        sizes: list[int] = []
        strides: list[int] = []
        for label, size, stride in zip(self.labels, self.sizes, self.strides):
            names = splits.get(label, (label,))
            parts = _split_sizes(label, size, names, known)
            for name in names:
                if name in labels:
                    raise ValueError(f"Duplicate dimension name '{name}'")
                labels.append(name)
            sizes.extend(parts)
            strides.extend(step * stride for step in _dense_strides(parts))
        if known:
            raise ValueError(f"unused size constraints: {tuple(known)}")
        return Shape(tuple(labels), tuple(sizes), tuple(strides), self.offset)

    def _parse_split(
        self, given: Mapping[str, Any]
    ) -> tuple[dict[str, tuple[str, ...]], dict[str, int]]:
        """Return the new names of each dimension, and the sizes of new dimensions."""
        splits: dict[str, tuple[str, ...]] = {}
        known: dict[str, int] = {}
        for key, value in given.items():
            if key in self.labels:
                if isinstance(value, str):
                    raise ValueError(f"expected a sequence of dimensions, but got '{value}'")
                splits[key] = tuple(value)
            elif isinstance(value, int):
                known[key] = value
            else:
                raise ValueError(
                    f"'{key}' is not an existing dim. Expected an integer size constraint on a "
                    "new dim."
                )
        return splits, known


def _split_sizes(
    label: str, size: int, names: tuple[str, ...], known: dict[str, int]
) -> tuple[int, ...]:
    """Return the sizes of the parts of a dimension, and remove those from `known`."""
    open_names = [name for name in names if name not in known]
    if len(open_names) > 1:
        raise ValueError(
            f"Cannot infer size of {names} because both {open_names[1]} and {open_names[0]} have "
            f"unknown size. Specify at least one as argument, e.g. {open_names[1]}=4"
        )
    rest, remainder = divmod(size, max(1, math.prod([known.get(name, 1) for name in names])))
    if remainder or (rest != 1 and not open_names):
        sizes = tuple(known.get(name, "?") for name in names)
        raise ValueError(
            f"Dimension '{label}' of size {size} is not evenly divided by {names!r} with sizes "
            f"{sizes!r}"
        )
    return tuple(known.pop(name, rest) for name in names)


def _dense_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    strides = list(itertools.accumulate(reversed(sizes), operator.mul, initial=1))
    return tuple(reversed(strides[:-1]))
