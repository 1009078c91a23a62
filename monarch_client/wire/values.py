"""Types of single values that several answers share."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, TypeAlias

from msgspec import Meta

# A key of JSON Schema that names a class of `jobs.statuses`: OpenAPI lists its choices. The client
# accepts any text, since a newer portal may have further ones.
CHOICES = "x-choices"

# US$; JSON has it as text with six places.
Usd: TypeAlias = Annotated[
    Decimal,
    Meta(extra_json_schema={"format": "decimal", "pattern": r"^-?\d{0,14}(?:\.\d{0,6})?$"}),
]
# A point in time with its time zone; the portal writes UTC.
Moment: TypeAlias = Annotated[datetime, Meta(tz=True)]


def machines_text(num_nodes: int, gpu_type: str, gpu_count: int) -> str:
    """Return the machines for people: `8 x H100:8` is 8 nodes with 8 each; without GPUs `8`."""
    if not gpu_count:
        return str(num_nodes)
    return f"{num_nodes} x {gpu_type or 'GPU'}:{gpu_count // max(1, num_nodes)}"
