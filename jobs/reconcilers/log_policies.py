"""Search new lines of logs for the patterns of log policies.

Ingest does not do this, and is not slowed down. The position of a search is stored in the same
transaction as the results of the last one, so that each line counts once even after a crash. A
job's own patterns run in a separate process, as those of log searches do.
"""

from __future__ import annotations

import logging
from functools import cache

from django.db.models import F, Q, QuerySet

from jobs.actions.attempts.apply_log_policies import apply_log_policies, give_up
from jobs.background.exclusive import LockSpace, exclusive
from jobs.errors import (
    InvalidPatternError,
    LogStoreAwayError,
    PortalBusyError,
    SearchTooSlowError,
)
from jobs.logs.match_pool import POOL
from jobs.logs.matching import Matcher, Question
from jobs.logs.searching import Budget, OwnLooker, Stretch, search_after
from jobs.models import Attempt, LogHead, LogWatch
from jobs.policies.log_rules import KNOWN_RULES, LogRule, any_of, rules_of, still_open
from jobs.statuses import ACTIVE_STATUSES

log = logging.getLogger(__name__)

OUR_PATTERNS = frozenset(rule.pattern for rule in KNOWN_RULES.values())
CANNOT_LOOK = (PortalBusyError, LogStoreAwayError)
# The most lines that one search finds; the next one continues after them.
_MOST_FOUND = 200


def due() -> list[int]:
    """Return attempts of active jobs that have lines which were not searched."""
    attempts = _with_unseen_lines().filter(job__status__in=ACTIVE_STATUSES)
    return list(attempts.values_list("pk", flat=True))


def has_unseen_lines(attempt_id: int) -> bool:
    """Whether an attempt has lines which were not searched."""
    return _with_unseen_lines().filter(pk=attempt_id).exists()


def _with_unseen_lines() -> QuerySet[Attempt]:
    never = Q(log_watch=None, log_head__next_line__gt=1)
    behind = Q(log_head__next_line__gt=F("log_watch__next_line"))
    return Attempt.objects.filter(never | behind)


def step(attempt_id: int) -> None:
    """Search the new lines of one attempt, up to a limit. Safe to repeat."""
    # A search may wait for a slow store: no second one begins meanwhile.
    with exclusive(LockSpace.LOG_POLICIES, attempt_id) as alone:
        attempt = _attempts().filter(pk=attempt_id).first()
        if alone and attempt is not None:
            _look_if_possible(attempt)


def _look_if_possible(attempt: Attempt) -> None:
    try:
        _look(attempt)
    except CANNOT_LOOK:
        # The next tick finds a free process, or the store of sealed logs available again.
        log.info("log policies wait", extra={"action": "log_policies", "attempt": attempt.pk})


def catch_up(attempt_id: int) -> None:
    """Search all lines, before the portal decides what follows the end of the attempt.

    One of CANNOT_LOOK: it is not possible now.
    """
    attempt = _attempts().filter(pk=attempt_id).get()
    while _look(attempt):
        pass


def _attempts() -> QuerySet[Attempt]:
    return Attempt.objects.select_related("job__project", "cluster")


def _look(attempt: Attempt) -> bool:
    """Search the next lines; return whether more lines follow."""
    watch, _ = LogWatch.objects.get_or_create(attempt=attempt)
    own = attempt.job.request.log_policies
    rules = [] if watch.is_given_up else still_open(rules_of(own), watch.reported)
    stretch = _searched(attempt, watch.next_line, rules) if rules else _passed_over(attempt)
    if stretch is None or stretch.last < watch.next_line:
        return False
    apply_log_policies(attempt, watch.next_line, stretch, rules)
    return stretch.is_cut


def _passed_over(attempt: Attempt) -> Stretch:
    """Return all lines as a stretch without matches."""
    next_line = LogHead.objects.values_list("next_line", flat=True).get(pk=attempt.pk)
    return Stretch([], next_line - 1, is_cut=False)


def _searched(attempt: Attempt, begin: int, rules: list[LogRule]) -> Stretch | None:
    """Return the matches of `rules` in the next lines; None if the search was given up."""
    patterns = tuple(rule.pattern for rule in rules)
    budget = Budget(_MOST_FOUND)
    if OUR_PATTERNS.issuperset(patterns):
        return search_after(OwnLooker(_matcher_for(patterns)), attempt.pk, begin - 1, budget)
    try:
        with POOL.lend(_question_of(patterns)) as process:
            return search_after(process, attempt.pk, begin - 1, budget)
    except (SearchTooSlowError, InvalidPatternError) as error:
        give_up(attempt, error.message)
        return None


@cache
def _matcher_for(patterns: tuple[str, ...]) -> Matcher:
    return Matcher(_question_of(patterns))


def _question_of(patterns: tuple[str, ...]) -> Question:
    return Question(text=any_of(patterns), is_regex=True, with_case=True, parts=patterns)
