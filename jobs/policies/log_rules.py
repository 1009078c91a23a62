"""Log policies: what a line that fits a pattern brings about while its job runs. Pure.

A job has those of the known failures (`jobs.policies.known_failures`), and its own
from `portal.log_policies`; one of its own under a known name replaces that one. Patterns are
RE2's; who looks for them is `jobs.reconcilers.log_policies`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jobs.policies.known_failures import FAILURES
from jobs.statuses import LogAction
from monarch_client.spec import LogPolicy

# What a line that shows a known failure brings about; their patterns are RE2's as well as Python's.
_ACTIONS_OF_KNOWN = {
    "gpu_hardware": {LogAction.ANNOTATE, LogAction.EXCLUDE_NODE},
    "cuda_oom": {LogAction.ANNOTATE, LogAction.NO_RETRY},
    "nccl_timeout": {LogAction.ANNOTATE},
    "disk_full": {LogAction.ANNOTATE},
}
# Lines of one rule that are reported in one attempt; then the rule is no longer evaluated.
MOST_TOLD = 10


@dataclass(frozen=True, slots=True)
class LogRule:
    """A pattern and what follows; `about` describes what was found."""

    name: str
    pattern: str
    actions: frozenset[LogAction]
    about: str = ""

    @property
    def title(self) -> str:
        """Name of the rule in messages."""
        return self.about or self.name


def _known() -> dict[str, LogRule]:
    return {
        failure.code: LogRule(
            name=failure.code,
            # As the table of known failures reads them: capital letters do not matter.
            pattern=f"(?i:{failure.pattern.pattern})",
            actions=frozenset(_ACTIONS_OF_KNOWN[failure.code]),
            about=failure.title,
        )
        for failure in FAILURES
        if failure.code in _ACTIONS_OF_KNOWN and failure.pattern is not None
    }


KNOWN_RULES = _known()


def rules_of(own: Iterable[LogPolicy]) -> list[LogRule]:
    """Return the rules of a job with `own` policies; rules without an action are left out."""
    rules = {**KNOWN_RULES, **{each.name: _rule(each) for each in own}}
    return [rule for rule in rules.values() if rule.actions]


def still_open(rules: Iterable[LogRule], reported: Mapping[str, int]) -> list[LogRule]:
    """List the rules that are still searched, with fewer than MOST_TOLD lines `reported`."""
    return [rule for rule in rules if reported.get(rule.name, 0) < MOST_TOLD]


def any_of(patterns: Sequence[str]) -> str:
    """Combine the patterns to one that matches whatever any of `patterns` matches."""
    return "|".join(f"(?:{pattern})" for pattern in patterns)


def _rule(policy: LogPolicy) -> LogRule:
    known = KNOWN_RULES.get(policy.name)
    return LogRule(
        name=policy.name,
        pattern=known.pattern if policy.pattern is None and known else str(policy.pattern),
        actions=frozenset(map(LogAction, policy.actions)),
        about=known.about if known else "",
    )
