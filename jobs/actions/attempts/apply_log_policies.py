"""The effects of lines that log policies found: notes, an end, no retry, a node to avoid."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db import transaction

from jobs.actions.clusters.warm_clusters import close_to_jobs
from jobs.actions.jobs.history import record_note
from jobs.backends import registry
from jobs.backends.base import AvoidedNode
from jobs.background.hints import wake_on_commit
from jobs.errors import BackendUnavailableError
from jobs.lifecycle import can_move, move
from jobs.logs.handed import redaction_of
from jobs.logs.lines import LogLine, storable
from jobs.logs.searching import Stretch
from jobs.models import Attempt, Job, LogWatch
from jobs.policies.diagnosis import readable
from jobs.policies.log_rules import MOST_TOLD, LogRule
from jobs.statuses import LOG_POLICY, JobKind, JobStatus, LogAction, StopReason

# The driver runs on the first host.
DRIVERS_RANK = 0


@dataclass
class _Findings:
    """The findings so far in one stretch of an attempt's log."""

    attempt: Attempt
    watch: LogWatch
    # The first line that is to end the job.
    failing: tuple[LogRule, LogLine] | None = field(default=None)


@transaction.atomic
def apply_log_policies(
    attempt: Attempt, begin: int, stretch: Stretch, rules: list[LogRule]
) -> None:
    """Do what `rules` say of the lines that a look from line `begin` on has found, once.

    The watch is set behind the stretch in the same transaction: a crash loses no line, and of two
    who looked at once one finds that it was done.
    """
    watch = LogWatch.objects.select_for_update(no_key=True).get(pk=attempt.pk)
    if watch.next_line != begin:
        return
    found = _Findings(attempt, watch)
    for each in stretch.found:
        for place in each.parts:
            _apply(found, rules[place], each.line)
    watch.next_line = stretch.last + 1
    watch.save()
    if found.failing is not None:
        _end(attempt, *found.failing)


@transaction.atomic
def give_up(attempt: Attempt, why: str) -> None:
    """Stop searching this attempt's log, and note it once."""
    given_up = LogWatch.objects.filter(pk=attempt.pk, is_given_up=False).update(is_given_up=True)
    if given_up:
        message = f"Log policies are not looked for any more in this attempt: {why}"
        record_note(attempt.job, message, attempt, verb=LOG_POLICY)


def avoided_nodes(job: Job) -> tuple[AvoidedNode, ...]:
    """Return the nodes that further attempts of `job` are to avoid, each once."""
    lists = LogWatch.objects.filter(attempt__job=job).exclude(avoided=[])
    nodes = {
        AvoidedNode(each["host"], each["infra"])
        for avoided in lists.values_list("avoided", flat=True)
        for each in avoided
    }
    return tuple(sorted(nodes, key=lambda node: (node.infra, node.host)))


def _apply(found: _Findings, rule: LogRule, line: LogLine) -> None:
    count = found.watch.reported.get(rule.name, 0) + 1
    if count > MOST_TOLD:
        return
    found.watch.reported[rule.name] = count
    said = []
    if LogAction.NO_RETRY in rule.actions and not found.watch.no_retry_by:
        found.watch.no_retry_by = rule.name
        said.append("The job is not tried again if this attempt fails.")
    if LogAction.EXCLUDE_NODE in rule.actions:
        said += _avoid(found, line.rank)
    if LogAction.FAIL in rule.actions and found.failing is None:
        found.failing = (rule, line)
        found.watch.no_retry_by = found.watch.no_retry_by or rule.name
    if LogAction.ANNOTATE in rule.actions or said:
        if count == MOST_TOLD:
            said.append("Further lines of this kind are not reported.")
        message = " ".join([_message(rule, line), *said])
        record_note(found.attempt.job, message, found.attempt, verb=LOG_POLICY, line=line.number)


def _message(rule: LogRule, line: LogLine) -> str:
    text = readable(line.text).strip()
    return f"{rule.title} (rank {line.rank}): {storable(text, len(text))}"


def _avoid(found: _Findings, rank: int) -> list[str]:
    """Have further attempts avoid the node of `rank`, once; what is to be said of it."""
    attempt, watch = found.attempt, found.watch
    if rank == DRIVERS_RANK and _repeats_others(attempt.job):
        return ["No node is avoided for it: the driver repeats what fails on any of them."]
    if any(each["rank"] == rank and each["host"] for each in watch.avoided):
        return []
    worker = attempt.workers.filter(rank=rank).first()
    host = worker.host if worker else ""
    infra = attempt.cluster.infra if attempt.cluster else ""
    # A name that was not known at first may be by now.
    others = [each for each in watch.avoided if each["rank"] != rank]
    watch.avoided = [*others, {"rank": rank, "host": host, "infra": infra}]
    if attempt.cluster_id is not None:
        # Kept for a next job it would bring the same node again.
        close_to_jobs(attempt.cluster_id)
    why_not = _why_not_avoided(attempt.job, AvoidedNode(host, infra))
    if why_not:
        return [f"The node {host or rank} is not avoided by further attempts: {why_not}"]
    return [f"Further attempts avoid the node {host}."]


def _repeats_others(job: Job) -> bool:
    """Whether lines of the driver's rank may be about another node: errors of actors reach it."""
    return job.kind == JobKind.MONARCH and job.num_nodes > 1


def _why_not_avoided(job: Job, node: AvoidedNode) -> str:
    try:
        return registry.get(job.backend_name).why_not_avoided(job.spec, node)
    except BackendUnavailableError as error:
        return error.message


def _end(attempt: Attempt, rule: LogRule, line: LogLine) -> None:
    """End the job as failed, whatever its attempt says; nothing if it is being ended already."""
    # Under a lock: had it moved between two looks at it, the line would have been in vain.
    job = Job.objects.select_for_update(no_key=True, of=("self",)).get(pk=attempt.job_id)
    newest = job.attempts.newest()
    if newest is None or newest.pk != attempt.pk:
        return
    if not can_move(JobStatus(job.status), JobStatus.STOPPING):
        return
    message = f"Line {line.number} ended it. {_message(rule, line)}"
    move(
        job,
        JobStatus.STOPPING,
        reason=StopReason.LOG_POLICY,
        message=redaction_of(attempt).excerpt(message),
        attempt=attempt,
        hint=f"The log policy {rule.name} has the action `fail`; see portal.log_policies.",
    )
    wake_on_commit("stopping", job.pk)
