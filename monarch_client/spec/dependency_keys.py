"""The keys of `portal` that declare dependencies: `depends_on`, `if_dependency_fails`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monarch_client.spec.shapes import Either, Listing, OneOf, Text, Whole
from monarch_client.spec.tables import Key, Table

MOST_DEPENDENCIES = 100
MOST_NUMBER = 2**62
JOB = Either(
    (
        Text("a job's or an array's name", r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"),
        Whole(1, MOST_NUMBER),
    )
)
_KEYS = (
    Key(
        "job",
        "The number of a job, or a name: the newest job or array of that name in the project.",
        JOB,
        "prepare-data",
        required=True,
        names="jobs",
    ),
    Key(
        "after",
        "`success`: after it has succeeded. `end`: after it has ended, with any result.",
        OneOf(("success", "end")),
        "end",
        default="success",
    ),
)
DEPENDS_ON_KEY = Key(
    "depends_on",
    "Jobs that must end first: with success, or with `after: end` with any result. Each is a "
    "name, a number, or a mapping with `job` and `after`.",
    Listing(
        Either((*JOB.options, Table(_KEYS, words="a mapping with job and after"))),
        most=MOST_DEPENDENCIES,
    ),
    ["prepare-data", {"job": "warm-cache", "after": "end"}],
    names="jobs",
)
IF_DEPENDENCY_FAILS_KEY = Key(
    "if_dependency_fails",
    "What to do if a dependency fails: `fail` ends this job as failed, `hold` holds it until a "
    "user releases it, `run` starts it once all dependencies have ended.",
    OneOf(("fail", "hold", "run")),
    "hold",
)


@dataclass(frozen=True, slots=True)
class Needed:
    """A job that comes before, by name or by number; `after` is success or end."""

    job: str | int
    after: str = "success"

    @classmethod
    def of(cls, written: Any) -> Needed:
        """Make it from any of the notations that are accepted."""
        if isinstance(written, dict):
            return cls(written["job"], written.get("after", "success"))
        return cls(written)

    def to_dict(self) -> dict[str, Any]:
        """Return the normal form."""
        return {"job": self.job, "after": self.after}
