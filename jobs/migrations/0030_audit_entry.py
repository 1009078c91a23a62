from django.db import migrations, models

import jobs.ground.clock

# Entries are only added.
APPEND_ONLY = """
CREATE FUNCTION jobs_audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'The audit log is append-only: % is refused.', TG_OP;
END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON jobs_auditentry
    FOR EACH ROW EXECUTE FUNCTION jobs_audit_is_append_only();
"""
NOT_APPEND_ONLY = """
DROP TRIGGER append_only ON jobs_auditentry;
DROP FUNCTION jobs_audit_is_append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("jobs", "0029_attempt_crash")]

    operations = [
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(default=jobs.ground.clock.now, editable=False)),
                ("verb", models.CharField(max_length=40)),
                ("user_id", models.BigIntegerField(null=True)),
                ("username", models.CharField(blank=True, max_length=150)),
                ("token_id", models.BigIntegerField(null=True)),
                ("token_name", models.CharField(blank=True, max_length=100)),
                ("caller_job_id", models.BigIntegerField(null=True)),
                ("source", models.CharField(max_length=60)),
                ("request_id", models.CharField(blank=True, max_length=64)),
                ("kind", models.CharField(max_length=20)),
                ("object_id", models.CharField(blank=True, max_length=20)),
                ("name", models.CharField(blank=True, max_length=250)),
                ("project_id", models.BigIntegerField(null=True)),
                ("project_slug", models.CharField(blank=True, max_length=60)),
                ("before", models.JSONField(null=True)),
                ("after", models.JSONField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["kind", "object_id", "id"], name="audit_of_object"),
                    models.Index(fields=["project_id", "id"], name="audit_of_project"),
                ],
            },
        ),
        migrations.RunSQL(APPEND_ONLY, NOT_APPEND_ONLY),
    ]
