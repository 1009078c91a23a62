from django.db import migrations, models
from django.db.models import Q

# `JobRequest.options()` of the jobs that are there, from the specifications stored with them.
FILL_IN = """
UPDATE jobs_job SET request_options = (
    SELECT coalesce(jsonb_object_agg(key, value), '{}')
    FROM (
        SELECT key, value FROM jsonb_each(coalesce(nullif(spec -> 'portal', 'null'), '{}'))
        WHERE key IN ('reuse', 'cluster', 'idle', 'budget_usd', 'if_dependency_fails', 'port',
                      'retry', 'log_policies')
        UNION ALL
        SELECT key, value FROM jsonb_each(spec) WHERE key IN ('secrets', 'resources')
    ) AS given
    WHERE value NOT IN ('null', 'false', '""', '{}', '[]')
)
"""


class Migration(migrations.Migration):
    dependencies = [("jobs", "0030_audit_entry")]

    operations = [
        migrations.AddField(
            model_name="job",
            name="request_options",
            field=models.JSONField(blank=True, db_default={}, default=dict),
        ),
        migrations.RunSQL(FILL_IN, migrations.RunSQL.noop),
        migrations.RemoveIndex(model_name="job", name="job_takes_kept"),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=Q(
                    ("status", "QUEUED"),
                    Q(
                        ("request_options__has_key", "reuse"),
                        ("request_options__has_key", "cluster"),
                        _connector="OR",
                    ),
                ),
                fields=["id"],
                name="job_takes_kept",
            ),
        ),
    ]
