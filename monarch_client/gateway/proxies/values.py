"""The results of a call to all actors of a mesh, by coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from monarch_client.runner.scripts.mportal_proxies.shapes import Shape

R = TypeVar("R")


class Extent(Mapping[str, int]):
    """The labels and sizes of dimensions."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = dict(sizes)

    @property
    def labels(self) -> list[str]:
        """The names of the dimensions."""
        return list(self._sizes)

    @property
    def sizes(self) -> list[int]:
        """The sizes of the dimensions."""
        return list(self._sizes.values())

    @property
    def nelements(self) -> int:
        """The number of points."""
        return len(Shape.dense(self._sizes))

    def __getitem__(self, label: str) -> int:
        return self._sizes[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sizes)

    def __len__(self) -> int:
        return len(self._sizes)

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{label}: {size}" for label, size in self._sizes.items()) + "}"


class Point(Mapping[str, int]):
    """Coordinates in a mesh, and the rank that they have there."""

    def __init__(self, rank: int, extent: Extent) -> None:
        self.rank = rank
        self.extent = extent
        coordinates = {}
        for label in reversed(extent.labels):
            rank, coordinates[label] = divmod(rank, extent[label])
        self._coordinates = {label: coordinates[label] for label in extent}

    def size(self, label: str) -> int:
        """Return the size of a dimension."""
        return self.extent[label]

    def __getitem__(self, label: str) -> int:
        return self._coordinates[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self._coordinates)

    def __len__(self) -> int:
        return len(self._coordinates)

    def __repr__(self) -> str:
        parts = (f"'{label}': {at}/{self.extent[label]}" for label, at in self.items())
        return "{" + ", ".join(parts) + "}"


class ShapedProxy:
    """The names and sizes of dimensions, which every proxy of a mesh has."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each dimension."""
        return self._shape.as_dict()

    @property
    def extent(self) -> Extent:
        """The labels and sizes of the dimensions."""
        return Extent(self.sizes)

    def size(self, dim: str | Sequence[str] | None = None) -> int:
        """Return the number of members, or of positions along the dimensions."""
        labels = self._shape.labels if dim is None else [dim] if isinstance(dim, str) else dim
        size = 1
        for label in labels:
            if label not in self.sizes:
                raise KeyError(f"the mesh has no dimension {label!r}")
            size *= self.sizes[label]
        return size

    def __len__(self) -> int:
        """Return the number of members."""
        return len(self._shape)


class ValueMeshProxy(ShapedProxy, Generic[R]):
    """The results of a call, one for each actor."""

    def __init__(self, shape: Shape, values: Sequence[R]) -> None:
        super().__init__(shape)
        self._values = dict(zip(shape.ranks(), values, strict=True))

    def item(self, **coordinates: int) -> R:
        """Return the value at the coordinates. KeyError, IndexError: there is none."""
        return self._values[self._shape.rank_at(coordinates)]

    def get(self, rank: int) -> R:
        """Return the value of a rank of this mesh."""
        return self._values[self._shape.ranks()[rank]]

    def items(self) -> Iterator[tuple[Point, R]]:
        """Iterate over the points and their values."""
        extent = self.extent
        return ((Point(rank, extent), value) for rank, value in enumerate(self.values()))

    def values(self) -> Iterator[R]:
        """Iterate over the values in the order of the ranks."""
        return (self._values[rank] for rank in self._shape.ranks())

    def __iter__(self) -> Iterator[tuple[Point, R]]:
        """Iterate over the points and their values."""
        return self.items()

    def slice(self, **selectors: Any) -> ValueMeshProxy[R]:
        """Return the values of a part; an integer removes its dimension."""
        return self._view(self._shape.slice(selectors))

    def flatten(self, name: str) -> ValueMeshProxy[R]:
        """Return the values in one dimension."""
        return self._view(self._shape.flatten(name))

    def split(self, **given: Any) -> ValueMeshProxy[R]:
        """Return the values with some dimensions split into several."""
        return self._view(self._shape.split(given))

    def rename(self, **names: str) -> ValueMeshProxy[R]:
        """Return the values with other names of dimensions."""
        return self.split(**{old: (new,) for old, new in names.items()})

    def _view(self, shape: Shape) -> ValueMeshProxy[R]:
        return ValueMeshProxy(shape, [self._values[rank] for rank in shape.ranks()])

    def __repr__(self) -> str:
        lines = "".join(f"\n  ({point}, {value!r})" for point, value in self.items())
        return f"ValueMeshProxy({self.extent}):{lines}"
