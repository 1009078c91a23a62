import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# A call per job takes long, and the planner has to know: it reads the index of a rare label, and
# not the newest jobs until one has the label.
COSTS = """
ALTER FUNCTION mportal_labels(jsonb) COST 10000;
ALTER FUNCTION mportal_grams(text) COST 10000;
"""
NO_COSTS = """
ALTER FUNCTION mportal_labels(jsonb) COST 100;
ALTER FUNCTION mportal_grams(text) COST 100;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0045_label_words'),
    ]

    operations = [
        migrations.AlterField(
            model_name='job',
            name='array',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='jobs', to='jobs.jobarray'),
        ),
        migrations.AlterField(
            model_name='job',
            name='parent',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='children', to='jobs.job'),
        ),
        migrations.AlterField(
            model_name='job',
            name='preempted_by',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='preempted', to='jobs.job'),
        ),
        migrations.AlterField(
            model_name='job',
            name='project',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='jobs', to='jobs.project'),
        ),
        migrations.AlterField(
            model_name='job',
            name='rerun_of',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, to='jobs.job'),
        ),
        migrations.AlterField(
            model_name='job',
            name='submitted_by',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='jobs', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('preempted_by__isnull', False)), fields=['preempted_by'], name='job_by_preempted_by'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('rerun_of__isnull', False)), fields=['rerun_of'], name='job_by_rerun_of'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(condition=models.Q(('parent__isnull', False)), fields=['parent'], name='job_by_parent'),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(fields=['project', 'kind', '-id'], name='job_by_kind'),
        ),
        migrations.RunSQL(COSTS, NO_COSTS),
    ]
