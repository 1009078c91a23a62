import django.db.models.deletion
import jobs.ground.clock
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0043_gateway_kind_sync'),
    ]

    operations = [
        migrations.CreateModel(
            name='TemplateVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60)),
                ('number', models.PositiveIntegerField(default=1)),
                ('source', models.TextField()),
                ('saved_at', models.DateTimeField(default=jobs.ground.clock.now, editable=False)),
                ('project', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='template_versions', to='jobs.project')),
                ('saved_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('project', 'name', 'number'), name='one_template_version'), models.UniqueConstraint(condition=models.Q(('project', None)), fields=('name', 'number'), name='one_shared_template_version')],
            },
        ),
    ]
