import json

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from monarch_client.spec.accelerators import known_count

RESOURCES = "coalesce(nullif(job.request_options -> 'resources', 'null'), '{}')"
# Distinct as JSON, in which 4 and 4.0 are equal: each job finds one.
ALL_RESOURCES = f"""
SELECT resources::text FROM (SELECT DISTINCT {RESOURCES} AS resources FROM jobs_job AS job) AS found
"""
# What `jobs.actions.clusters.settle` would have stored when these clusters were terminated.
FILL_IN = f"""
INSERT INTO jobs_settleduse
    (cluster_id, project_id, day, job_id, user_id, gpus, micro_usd, node_hours)
SELECT cluster.id, cluster.project_id, (cluster.created_at AT TIME ZONE 'UTC')::date,
    job.id, job.submitted_by_id, known.gpus, trunc(coalesce(cluster.usd, 0) * 1000000),
    cluster.num_nodes * date_part('epoch', cluster.gone_at - cluster.created_at) / 3600
FROM jobs_cluster AS cluster
JOIN jobs_attempt AS attempt ON attempt.cluster_id = cluster.id
JOIN jobs_job AS job ON job.id = attempt.job_id
JOIN unnest(%s::jsonb[], %s::integer[]) AS known (resources, gpus)
    ON known.resources = {RESOURCES}
WHERE cluster.status = 'GONE' AND cluster.stopped_at IS NULL
    AND NOT cluster.is_reusable AND cluster.fingerprint = ''
    AND (cluster.usd_per_hour IS NULL OR cluster.billed_at >= cluster.gone_at)
    AND (cluster.usd IS NULL OR cluster.usd < 1000000)
    AND (cluster.created_at AT TIME ZONE 'UTC')::date
        = (cluster.gone_at AT TIME ZONE 'UTC')::date
    AND NOT EXISTS (
        SELECT FROM jobs_attempt AS other
        WHERE other.cluster_id = cluster.id AND other.id <> attempt.id
    )
ORDER BY cluster.id
"""


def fill_in(apps, schema_editor):
    """Store the final cost of the clusters that were terminated before."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(ALL_RESOURCES)
        texts = [text for (text,) in cursor.fetchall()]
        cursor.execute(FILL_IN, [texts, [known_count(json.loads(text)) for text in texts]])


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0049_one_user_of_a_name'),
    ]

    operations = [
        migrations.CreateModel(
            name='SettledUse',
            fields=[
                ('cluster', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='settled_use', serialize=False, to='jobs.cluster')),
                ('day', models.DateField()),
                ('gpus', models.PositiveIntegerField(blank=True, null=True)),
                ('micro_usd', models.BigIntegerField()),
                ('node_hours', models.FloatField()),
                ('job', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='jobs.job')),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='jobs.project')),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['project', 'day'], name='settled_use_by_day')],
            },
        ),
        migrations.RunPython(fill_in, migrations.RunPython.noop),
    ]
