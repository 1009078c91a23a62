"""The keys of `portal.log_policies`: what lines of a job's log bring about."""

from __future__ import annotations

from typing import Any

from monarch_client.spec.findings import Findings, SpecCode, join
from monarch_client.spec.shapes import Listing, OneOf, Text
from monarch_client.spec.tables import Key, Table

MOST_POLICIES = 20
LOG_ACTIONS = ("annotate", "fail", "no_retry", "exclude_node")

_KEYS = (
    Key(
        "name",
        "The policy's name. A policy with the name of a built-in one replaces it.",
        Text("a short name, such as loss_is_nan", r"[a-z][a-z0-9_-]{0,39}"),
        "loss_is_nan",
        required=True,
    ),
    Key(
        "pattern",
        "A regular expression of RE2, matched against each line; optional if the policy only "
        "changes the actions of a built-in one.",
        Text("a regular expression", r"[\s\S]+", most_bytes=500),
        "loss is (nan|inf)",
    ),
    Key(
        "actions",
        "`annotate` records the line in the job's history; `fail` ends the job as failed; "
        "`no_retry` prevents a retry after this attempt; `exclude_node` avoids the node in later "
        "attempts, if the backend supports it. An empty list disables the policy.",
        Listing(OneOf(LOG_ACTIONS), most=len(LOG_ACTIONS)),
        ["annotate", "fail"],
        required=True,
    ),
)
LOG_POLICIES = Listing(
    Table(_KEYS, words="a mapping with name, pattern and actions"), most=MOST_POLICIES
)
LOG_POLICIES_KEY = Key(
    "log_policies",
    "Actions on log lines that match a pattern, in addition to the built-in policies.",
    LOG_POLICIES,
    [{"name": "loss_is_nan", "pattern": "loss is (nan|inf)", "actions": ["annotate", "fail"]}],
)


def names_are_used_once(values: dict[str, Any], path: str, findings: Findings) -> None:
    """Refuse two log policies of one name: it would be unclear which one applies."""
    policies = values.get("log_policies")
    seen: set[str] = set()
    for number, policy in enumerate(policies if isinstance(policies, list) else ()):
        name = policy.get("name") if isinstance(policy, dict) else None
        if isinstance(name, str) and name in seen:
            where = join(f"{join(path, 'log_policies')}[{number}]", "name")
            findings.add(where, SpecCode.CONFLICT, f"{where}: there is a policy {name!r} already.")
        elif isinstance(name, str):
            seen.add(name)
