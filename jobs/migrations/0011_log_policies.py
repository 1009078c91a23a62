import django.db.models.deletion
from django.db import migrations, models

STOP_REASONS = [('COMPLETED', 'Completed'), ('USER_CODE', 'The program failed'), ('SETUP', 'Setup failed'), ('NO_CAPACITY', 'No capacity'), ('WORKER_LOST', 'A worker was lost'), ('WORKER_NEVER_READY', 'A worker never listened'), ('PYTHON_MISMATCH', 'Python versions differ'), ('MONARCH', 'Monarch reported a fault'), ('TIMEOUT', 'Ran too long'), ('OOM', 'Out of memory'), ('BUDGET', 'Budget spent'), ('IDLE', 'Idle'), ('CANCELLED_BY_USER', 'Cancelled by a user'), ('PREEMPTED', 'Preempted'), ('DEPENDENCY', 'A dependency failed'), ('BACKEND', 'The backend failed'), ('LOG_POLICY', 'A line of its log ended it')]


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0010_gpus_idle_since'),
    ]

    operations = [
        migrations.AlterField(
            model_name='attempt',
            name='stop_reason',
            field=models.CharField(blank=True, choices=STOP_REASONS, max_length=20),
        ),
        migrations.AlterField(
            model_name='job',
            name='stop_reason',
            field=models.CharField(blank=True, choices=STOP_REASONS, max_length=20),
        ),
        migrations.AddField(
            model_name='jobevent',
            name='line',
            field=models.BigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='worker',
            name='host',
            field=models.CharField(blank=True, db_default='', default='', max_length=100),
        ),
        migrations.CreateModel(
            name='LogWatch',
            fields=[
                ('attempt', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='log_watch', serialize=False, to='jobs.attempt')),
                ('next_line', models.BigIntegerField(default=1)),
                ('told', models.JSONField(default=dict)),
                ('no_retry_by', models.CharField(blank=True, max_length=60)),
                ('avoided', models.JSONField(default=list)),
                ('is_given_up', models.BooleanField(default=False)),
            ],
        ),
    ]
