import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0040_task_report'),
    ]

    operations = [
        migrations.CreateModel(
            name='ProgramSeries',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('rank', models.PositiveIntegerField()),
                ('name', models.CharField(max_length=64)),
                ('at', models.FloatField()),
                ('step', models.BigIntegerField()),
                ('value', models.FloatField(null=True)),
                ('lowest', models.FloatField(null=True)),
                ('highest', models.FloatField(null=True)),
                ('stride', models.PositiveBigIntegerField(default=1)),
                ('recent', models.JSONField(default=list)),
                ('old', models.JSONField(default=list)),
                ('attempt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='program_series', to='jobs.attempt')),
            ],
            options={
                'verbose_name_plural': 'program series',
                'constraints': [models.UniqueConstraint(fields=('attempt', 'rank', 'name'), name='one_program_series_per_rank_and_name')],
            },
        ),
    ]
