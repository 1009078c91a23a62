"""Client and portal name the same things: fields of what is answered, and codes of errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_args, get_type_hints

import httpx
import pytest

from jobs import errors as portal_errors
from jobs.api.base import serializers
from jobs.api.base.errors import problem_of
from jobs.api.clusters import cluster_serializers
from jobs.api.clusters.cloud_views import CloudEntrySerializer, CloudStateSerializer
from jobs.api.jobs import array_serializers
from jobs.api.jobs.schedule_views import (
    ScheduleDetailSerializer,
    ScheduleRunSerializer,
    ScheduleSerializer,
)
from jobs.api.jobs.why_view import BindingLimitSerializer, NamedJobSerializer, WaitingSerializer
from jobs.api.logs.log_views import LogLineSerializer
from jobs.api.projects.member_views import MemberSerializer
from jobs.api.projects.secret_views import SecretSerializer
from jobs.api.queue import queue_serializers
from jobs.api.usage.budget_view import BudgetSerializer, NoticeSerializer
from jobs.api.usage.usage_view import UsageRowSerializer, UsageSerializer
from jobs.policies.diagnosis import Diagnosis
from jobs.readers.budget import BudgetView, Notice
from jobs.readers.cloud_list import CloudView
from jobs.readers.clusters import ClusterRow
from jobs.readers.infra import GpuRow, InfraView
from jobs.readers.job_array import ArrayView
from jobs.readers.job_history import EventView
from jobs.readers.job_log import JobLogLine
from jobs.readers.job_page import AttemptView, StageView, WorkerView
from jobs.readers.job_table import JobRow
from jobs.readers.member_list import MemberView
from jobs.readers.project_list import ProjectView
from jobs.readers.schedules import ScheduleRunView, ScheduleView
from jobs.readers.secret_list import SecretView
from jobs.readers.token_list import TokenView
from jobs.readers.usage import Usage, UsageRow
from jobs.readers.wait_explanation import Named, Waiting
from monarch_client import errors as client_errors
from monarch_client.rest import (
    array_models,
    machine_models,
    models,
    money_models,
    queue_models,
    schedule_models,
)
from monarch_client.rest.refusals import refusal

# What the client reads and what the portal writes it with.
ANSWERS = {
    models.Job: serializers.JobDetailSerializer,
    models.Dependency: serializers.DependencySerializer,
    array_models.JobArray: array_serializers.ArraySerializer,
    models.Stage: serializers.StageSerializer,
    models.Worker: serializers.WorkerSerializer,
    models.Diagnosis: serializers.DiagnosisSerializer,
    models.Attempt: serializers.AttemptSerializer,
    models.Event: serializers.EventSerializer,
    models.Project: serializers.ProjectDetailSerializer,
    models.Me: serializers.MeSerializer,
    models.Token: serializers.NewTokenSerializer,
    models.Secret: SecretSerializer,
    models.Member: MemberSerializer,
    models.CloudEntry: CloudEntrySerializer,
    models.CloudState: CloudStateSerializer,
    models.Upload: serializers.UploadSerializer,
    models.Validation: serializers.ValidationSerializer,
    models.LogLine: LogLineSerializer,
    machine_models.Cluster: cluster_serializers.ClusterSerializer,
    machine_models.Candidate: cluster_serializers.CandidateSerializer,
    machine_models.Plan: cluster_serializers.PlanSerializer,
    machine_models.Cloud: cluster_serializers.CloudSerializer,
    machine_models.Gpu: cluster_serializers.GpuSerializer,
    machine_models.Infra: cluster_serializers.InfraSerializer,
    money_models.Budget: BudgetSerializer,
    money_models.Notice: NoticeSerializer,
    money_models.Usage: UsageSerializer,
    money_models.UsageRow: UsageRowSerializer,
    queue_models.BindingLimit: BindingLimitSerializer,
    queue_models.NamedJob: NamedJobSerializer,
    queue_models.Waiting: WaitingSerializer,
    schedule_models.Schedule: ScheduleDetailSerializer,
    schedule_models.ScheduleRun: ScheduleRunSerializer,
    queue_models.Amount: queue_serializers.AmountSerializer,
    queue_models.Place: queue_serializers.PlaceSerializer,
    queue_models.Queue: queue_serializers.QueueSerializer,
    queue_models.PersonUse: queue_serializers.PersonUseSerializer,
    queue_models.Quota: queue_serializers.QuotaSerializer,
    queue_models.Share: queue_serializers.ShareSerializer,
    queue_models.Turn: queue_serializers.TurnSerializer,
    queue_models.Weight: queue_serializers.WeightSerializer,
    client_errors.SpecError: serializers.SpecErrorSerializer,
}
# Written by the portal, of no use to the client.
NOT_READ = {(models.Upload, "created_at")}
# Not in every answer of the kind: a list has no specifications, a token its secret only once.
NOT_ALWAYS = {
    (models.Job, "spec"),
    (models.Job, "dependencies"),
    (models.Job, "spec_source"),
    (models.Project, "job_counts"),
    (models.Token, "token"),
    (schedule_models.Schedule, "spec_source"),
    (schedule_models.Schedule, "upcoming"),
    (schedule_models.Schedule, "runs"),
}
# What a reader gives and what it is written with; the address of a page is REST's own.
VIEWS = {
    JobRow: (serializers.JobSerializer, {"url"}),
    ArrayView: (array_serializers.ArraySerializer, {"url"}),
    StageView: (serializers.StageSerializer, set()),
    WorkerView: (serializers.WorkerSerializer, set()),
    AttemptView: (serializers.AttemptSerializer, set()),
    Diagnosis: (serializers.DiagnosisSerializer, set()),
    EventView: (serializers.EventSerializer, set()),
    ProjectView: (serializers.ProjectSerializer, set()),
    SecretView: (SecretSerializer, set()),
    MemberView: (MemberSerializer, set()),
    CloudView: (CloudStateSerializer, set()),
    TokenView: (serializers.TokenSerializer, set()),
    JobLogLine: (LogLineSerializer, set()),
    ClusterRow: (cluster_serializers.ClusterSerializer, set()),
    GpuRow: (cluster_serializers.GpuSerializer, set()),
    InfraView: (cluster_serializers.InfraSerializer, set()),
    BudgetView: (BudgetSerializer, set()),
    Notice: (NoticeSerializer, set()),
    Usage: (UsageSerializer, set()),
    UsageRow: (UsageRowSerializer, set()),
    Named: (NamedJobSerializer, set()),
    Waiting: (WaitingSerializer, set()),
    ScheduleView: (ScheduleSerializer, set()),
    ScheduleRunView: (ScheduleRunSerializer, set()),
}
# Codes of what never reaches the portal, or never came from one.
OF_THE_CLIENT_ALONE = {
    client_errors.ClientError,
    client_errors.NotSignedInError,
    client_errors.UnreachableError,
    client_errors.UnprovedPortalError,
    client_errors.UnexpectedAnswerError,
    client_errors.RefusedError,
}


def subclasses(kind: type) -> Iterator[type]:
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


def raised_by_the_portal() -> list[type[portal_errors.PortalError]]:
    found = [portal_errors.PortalError, *subclasses(portal_errors.PortalError)]
    return sorted(set(found), key=lambda kind: (kind.code, kind.__name__))


def name_of(value: Any) -> str:
    return value.__name__ if isinstance(value, type) else str(value)


def test_no_answer_of_the_client_is_left_out_here():
    modules = (models, array_models, machine_models, money_models, queue_models, schedule_models)
    named = [each for module in modules for each in vars(module).values()]
    kinds = {kind for kind in named if is_dataclass(kind)}
    assert kinds | {client_errors.SpecError} == {*ANSWERS, models.Page, models.LogPage}


@pytest.mark.parametrize("kind", ANSWERS, ids=name_of)
def test_the_client_reads_the_fields_that_the_portal_writes(kind):
    written = set(ANSWERS[kind]().fields)
    assert {f.name for f in fields(kind)} == {
        name for name in written if (kind, name) not in NOT_READ
    }


@pytest.mark.parametrize("kind", ANSWERS, ids=name_of)
def test_what_may_be_null_is_expected_to_be_null(kind):
    hints = get_type_hints(kind)
    for name, written in ANSWERS[kind]().fields.items():
        if (kind, name) not in NOT_READ | NOT_ALWAYS and written.allow_null:
            assert type(None) in get_args(hints[name]), name


def test_what_is_not_in_every_answer_has_a_default():
    for kind, name in NOT_ALWAYS:
        field = kind.__dataclass_fields__[name]
        assert field.default is not MISSING or field.default_factory is not MISSING


@pytest.mark.parametrize("view", VIEWS, ids=name_of)
def test_rest_writes_the_fields_that_a_reader_gives(view):
    serializer, of_rest_alone = VIEWS[view]
    assert {f.name for f in fields(view)} == set(serializer().fields) - of_rest_alone


def test_a_code_of_the_client_is_one_of_the_portals_or_its_very_own():
    shared = {
        kind.code
        for kind in subclasses(client_errors.ClientError)
        if kind not in OF_THE_CLIENT_ALONE and "code" in vars(kind) and _is_of_the_tree(kind)
    }
    assert shared <= {kind.code for kind in raised_by_the_portal()}
    assert {"invalid_spec", "invalid_upload", "upload_too_large"} <= shared


def _is_of_the_tree(kind: type) -> bool:
    return kind.__module__ == client_errors.__name__


@pytest.mark.parametrize("kind", raised_by_the_portal(), ids=name_of)
def test_every_refusal_of_the_portal_reaches_the_client_with_its_code_and_words(kind):
    answer = problem_of(kind("It is so.", errors=[]))
    request = httpx.Request("GET", "http://portal/api/v1/me")
    response = httpx.Response(
        answer.status_code, headers=dict(answer.items()), content=answer.content, request=request
    )
    error = refusal(response)
    assert isinstance(error, client_errors.RefusedError)
    assert (error.portal_code, error.message) == (kind.code, "It is so.")
    expected = {
        404: client_errors.MissingError,
        403: client_errors.ForbiddenError,
        409: client_errors.ConflictError,
    }
    assert type(error) is expected.get(kind.http_status, client_errors.RefusedError)


def test_the_tree_in_the_clients_docstring_names_every_error():
    tree = str(client_errors.__doc__)
    for kind in [k for k in subclasses(client_errors.ClientError) if _is_of_the_tree(k)]:
        assert kind.__name__ in tree


def test_errors_of_a_specification_look_the_same_from_both_sides():
    error = client_errors.SpecError("name", 1, "bad_value", "No.", "yes")
    assert json.loads(json.dumps(error.to_dict())) == error.to_dict()
    # Of one specification nobody has to say which it is.
    assert {*error.to_dict(), "document"} == set(serializers.SpecErrorSerializer().fields)
