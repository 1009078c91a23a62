import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0006_handed_secrets'),
    ]

    operations = [
        migrations.CreateModel(
            name='HostMetrics',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('rank', models.PositiveIntegerField()),
                ('at', models.DateTimeField()),
                ('latest', models.JSONField()),
                ('recent', models.JSONField(default=list)),
                ('history', models.JSONField(default=list)),
                ('step_s', models.FloatField(default=0)),
                ('attempt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='host_metrics', to='jobs.attempt')),
            ],
            options={
                'verbose_name_plural': 'host metrics',
                'constraints': [models.UniqueConstraint(fields=('attempt', 'rank'), name='one_host_metrics_per_rank')],
            },
        ),
    ]
