"""Store sessions with their users. Those that are open stay open."""

import django.db.models.deletion
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.db import migrations, models
from django.utils import timezone


def move_sessions(apps, schema_editor):
    kept = apps.get_model("sessions", "Session")
    users = set(apps.get_model("jobs", "User").objects.values_list("pk", flat=True))
    moved = apps.get_model("jobs", "UserSession")
    for row in kept.objects.filter(expire_date__gt=timezone.now()).iterator():
        user_id = int(SessionStore().decode(row.session_data).get("_auth_user_id", 0))
        if user_id in users:
            moved.objects.create(
                session_key=row.session_key,
                session_data=row.session_data,
                expire_date=row.expire_date,
                user_id=user_id,
            )
    kept.objects.all().delete()


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0038_gateway_kind"),
        ("sessions", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="UserSession",
            fields=[
                (
                    "session_key",
                    models.CharField(
                        max_length=40,
                        primary_key=True,
                        serialize=False,
                        verbose_name="session key",
                    ),
                ),
                ("session_data", models.TextField(verbose_name="session data")),
                ("expire_date", models.DateTimeField(db_index=True, verbose_name="expire date")),
                ("signed_in_at", models.DateTimeField(null=True)),
                ("address", models.CharField(blank=True, max_length=60)),
                ("browser", models.CharField(blank=True, max_length=200)),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "session",
                "verbose_name_plural": "sessions",
                "abstract": False,
            },
        ),
        migrations.RunPython(move_sessions, migrations.RunPython.noop),
    ]
