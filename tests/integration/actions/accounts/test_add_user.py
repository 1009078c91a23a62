"""Further users."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError
from django.test import Client

from jobs.actions.accounts.add_user import add_user
from jobs.errors import ConflictError
from jobs.models import AuditEntry, User
from tests.factories import make_user

pytestmark = pytest.mark.django_db


def test_a_new_user_is_let_in_by_the_link_and_is_in_no_project():
    out = StringIO()
    call_command("add_user", "nora", stdout=out)
    link = out.getvalue().strip()
    browser = Client()
    browser.post(link[link.index("/sign-in/once/") :])
    assert b"You are not a member of any project yet" in browser.get("/").content
    nora = User.objects.get(username="nora")
    assert not nora.has_usable_password()
    assert not nora.is_superuser


@pytest.mark.parametrize(
    "name",
    [
        "nora",
        "NORA",
        "\uff4e\uff4f\uff52\uff41",
        "\uff4d\uff45",
        "two words",
        "",
        "x" * 200,
        "me",
        ".",
        "..",
    ],
)
def test_a_name_that_is_taken_or_invalid_is_refused_and_makes_no_user(name):
    add_user("nora")
    with pytest.raises(ConflictError):
        add_user(name)
    with pytest.raises(CommandError):
        call_command("add_user", name)
    assert User.objects.count() == 1


def test_a_superuser_of_djangos_command_is_in_the_audit_log():
    add_user("nora")
    call_command("createsuperuser", "--no-input", "--username=root", "--email=", verbosity=0)
    entry = AuditEntry.objects.latest("pk")
    assert (entry.verb, entry.kind, entry.name) == ("add_user", "user", "root")
    assert entry.after == {"is_superuser": True}
    assert User.objects.get(username="root").is_superuser


def test_the_database_refuses_names_that_differ_by_case_alone():
    make_user("ada")
    with pytest.raises(IntegrityError, match="one_user_of_a_name"):
        make_user("ADA")
